"""chrF between all pairs of some texts, in one go (Popović 2015).

chrF of a text against a reference is the F-score, β = 2, of their character n-grams, orders 1 to 6,
spaces left out. Between two texts of which one has an n-gram a times and the other b times, it
matches min(a, b) times, and

    min(a, b) = Σ_t [a ≥ t] [b ≥ t],   t = 1, 2, …

So with a column for every n-gram's first, second, … occurrence, and 1 where a text has it, the
matches of all pairs are one product of matrices. The figures are those of sacreBLEU's
``sentence_chrf``.

Shapes: N texts, P characters of all of them together, K numbers of a statistic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ORDERS = 6
"""Character n-grams up to this length."""

_COLUMNS_AT_ONCE = 1 << 13


def pairwise_chrf(texts: Sequence[str]) -> Floats:
    """(N, N): row i, column j is chrF, 0 to 100, of text i against text j as its reference."""
    count = len(texts)
    statistics = np.zeros((count, count, 3 * ORDERS))
    for order, (owner, gram) in enumerate(_ngrams(texts)):
        total = np.bincount(owner, minlength=count)
        statistics[:, :, 3 * order] = total[:, None]
        statistics[:, :, 3 * order + 1] = total
        statistics[:, :, 3 * order + 2] = _matches(owner, gram, count)
    return f_score(statistics.reshape(-1, 3 * ORDERS)).reshape(count, count)


def f_score(statistics: Floats) -> Floats:
    """(M, K) -> (M,): the F-score, β = 2, of precision and recall averaged over the orders that
    occur. K numbers: of each order the n-grams of text and reference, and how many match."""
    hypothesis, reference, matched = statistics[:, 0::3], statistics[:, 1::3], statistics[:, 2::3]
    occurs = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(occurs.sum(1), 1)
    precision = np.where(occurs, matched / np.maximum(hypothesis, 1), 0).sum(1) / orders
    recall = np.where(occurs, matched / np.maximum(reference, 1), 0).sum(1) / orders
    weighted = np.maximum(4 * precision + recall, np.finfo(float).tiny)
    score: Floats = 100 * 5 * precision * recall / weighted
    return score


def _ngrams(texts: Sequence[str]) -> Iterator[tuple[Integers, Integers]]:
    """Yields for all n-grams of each order: the text that has it, and a number for its content."""
    squeezed = ["".join(text.split()) for text in texts]
    lengths = np.array([len(text) for text in squeezed], np.int64)
    joined = "".join(squeezed).encode("utf-32-le", "surrogatepass")
    letter = _number(np.frombuffer(joined, np.uint32).astype(np.int64))  # (P,)
    owner = np.arange(len(texts)).repeat(lengths)
    left = lengths.cumsum().repeat(lengths) - np.arange(len(letter))  # to the end of the text
    letters, gram = int(letter.max(initial=-1)) + 1, letter
    for order in range(1, ORDERS + 1):
        if order > 1:
            # One letter more than those of the order before; the last ones have none.
            following = np.append(letter[order - 1 :], np.zeros(order - 1, np.int64))[: len(letter)]
            gram = _number(gram * letters + following)
        whole = left >= order
        yield owner[whole], gram[whole]


def _number(keys: Integers) -> Integers:
    """Small numbers, equal where the keys are."""
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _matches(owner: Integers, gram: Integers, count: int) -> Floats:
    """(N, N): how many n-grams each two texts share, repetitions counted."""
    order = np.lexsort((owner, gram))
    owner, gram = owner[order], gram[order]
    same = np.append(False, (owner[1:] == owner[:-1]) & (gram[1:] == gram[:-1]))[: len(owner)]
    # Which occurrence in its text each is: how far behind the first of its run.
    places = np.arange(len(owner))
    occurrence = places - np.maximum.accumulate(np.where(same, 0, places))
    column = _number(gram * (int(occurrence.max(initial=0)) + 1) + occurrence)
    matches = np.zeros((count, count))
    by_column = np.argsort(column, kind="stable")
    owner, column = owner[by_column], column[by_column]
    for first in range(0, int(column.max(initial=-1)) + 1, _COLUMNS_AT_ONCE):
        begin, end = np.searchsorted(column, (first, first + _COLUMNS_AT_ONCE))
        has = np.zeros((count, _COLUMNS_AT_ONCE), np.float32)
        has[owner[begin:end], column[begin:end] - first] = 1
        matches += has @ has.T
    return matches
