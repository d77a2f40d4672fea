"""An interpolated n-gram model with modified Kneser–Ney smoothing, the baseline of language models.

    p_n(w | h) = (a(h w) - D(a(h w))) / a(h ·) + γ(h) p_{n-1}(w | h without its first token)
    γ(h) = (D1 N1(h ·) + D2 N2(h ·) + D3 N3+(h ·)) / a(h ·)

(Chen and Goodman, 1999.) a counts occurrences at the highest order and behind the beginning of a
text, and elsewhere how many different tokens stand before; N_k(h ·) is how many tokens follow h
with a = k. Discounts are estimated from counts of counts, for each order. Below the unigrams lies
the uniform distribution over all tokens but BOS, so that every token has a probability.

It is here and not in the program, which does not train n-grams: it is what a language model is
measured beside. Tests hold it to the definitions written down, and to sums of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNSEEN = -1


@dataclass(frozen=True)
class _Order:
    """All n-grams of one order, by number."""

    keys: Ids
    """(G,) sorted: number of the first n - 1 tokens, times V, plus the last token."""
    discounted: Floats
    """(G,) a(h w) - D(a(h w)), over a(h ·)."""
    back: Floats
    """(contexts,) γ(h), by the number of h; 1 for what nothing follows."""


class KneserNey:
    """A model of order N over tokens 0 … V - 1. Make one with ``train``."""

    def __init__(self, orders: Sequence[_Order], vocabulary: int, bos: int) -> None:
        self._orders = orders
        self._vocabulary = vocabulary
        self._bos = bos

    @classmethod
    def train(
        cls, texts: Sequence[Sequence[int]], order: int, vocabulary: int, bos: int, eos: int
    ) -> KneserNey:
        """From texts without begin and end symbols, to which these are added."""
        tokens, places = _laid_out(texts, bos, eos)
        numbers = [np.zeros(len(tokens), np.int64)]
        """Of the n-gram that ends at each place, by n."""
        keys: list[Ids] = []
        context = numbers[0]  # all have the empty one
        for n in range(1, order + 1):
            seen = places >= n - 1
            made = np.where(seen, context * vocabulary + tokens, UNSEEN)
            unique, inverse = np.unique(made[seen], return_inverse=True)
            number = np.full(len(tokens), UNSEEN)
            number[seen] = inverse
            numbers.append(number)
            keys.append(unique)
            context = _before(number)
        orders = []
        for n in range(1, order + 1):
            size = len(keys[n - 1])
            if n == order:
                counts = np.bincount(numbers[n][places >= n - 1], minlength=size)
            else:
                # One place of each longer n-gram, and those that stand at the beginning of a text.
                _, first = np.unique(numbers[n + 1][places >= n], return_index=True)
                longer = np.flatnonzero(places >= n)[first]
                at_once = np.concatenate([numbers[n][longer], numbers[n][places == n - 1]])
                counts = np.bincount(at_once, minlength=size)
            if n == 1:
                counts[keys[0] == bos] = 0  # which is never predicted
            contexts = len(keys[n - 2]) if n > 1 else 1
            orders.append(_smoothed(keys[n - 1], counts, keys[n - 1] // vocabulary, contexts))
        return cls(orders, vocabulary, bos)

    def log_probabilities(self, texts: Sequence[Sequence[int]], eos: int) -> Floats:
        """log P, in nats, of each token of each text and of its end symbol, end to end."""
        tokens, places = _laid_out(texts, self._bos, eos)
        found = np.full(len(tokens), 1.0 / (self._vocabulary - 1))
        context = np.zeros(len(tokens), np.int64)  # number of the tokens before each, at this order
        for n, order in enumerate(self._orders, start=1):
            known = (context != UNSEEN) & (places >= n - 1)
            wanted = np.where(known, context * self._vocabulary + tokens, UNSEEN)
            place = np.minimum(np.searchsorted(order.keys, wanted), len(order.keys) - 1)
            is_there = known & (order.keys[place] == wanted)
            found = np.where(known, order.back[np.where(known, context, 0)], 1.0) * found
            found = found + np.where(is_there, order.discounted[place], 0.0)
            context = _before(np.where(is_there, place, UNSEEN))
        return np.log(found[places > 0])


def _smoothed(keys: Ids, counts: Ids, context: Ids, contexts: int) -> _Order:
    discounts = _discounts(counts)
    kinds = np.minimum(counts, 3)
    totals = np.bincount(context, counts, contexts)
    held = np.bincount(context, discounts[kinds], contexts)  # D1 N1 + D2 N2 + D3 N3+
    with np.errstate(invalid="ignore", divide="ignore"):
        back = np.where(totals > 0, held / totals, 1.0)
        discounted = np.where(counts > 0, (counts - discounts[kinds]) / totals[context], 0.0)
    return _Order(keys, discounted, back)


def _discounts(counts: Ids) -> Floats:
    """D0 = 0, D1, D2 and D3+ (Chen and Goodman, equation 26)."""
    ones, twos, threes, fours = (float((counts == k).sum()) for k in (1, 2, 3, 4))
    if not (ones and twos and threes):
        return np.array([0.0, 0.5, 0.5, 0.5])  # too little text to estimate them
    y = ones / (ones + 2 * twos)
    found = [0.0, 1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos, 3 - 4 * y * fours / threes]
    return np.clip(found, 0.0, [0.0, 1.0, 2.0, 3.0])


def _laid_out(texts: Sequence[Sequence[int]], bos: int, eos: int) -> tuple[Ids, Ids]:
    """BOS, tokens, EOS of all texts end to end, and the place of each in its text."""
    wholes = [np.concatenate([[bos], np.asarray(text, np.int64), [eos]]) for text in texts]
    tokens = np.concatenate(wholes).astype(np.int64)
    return tokens, np.concatenate([np.arange(len(whole)) for whole in wholes])


def _before(numbers: Ids) -> Ids:
    """Of the place before each."""
    return np.concatenate([[UNSEEN], numbers[:-1]])
