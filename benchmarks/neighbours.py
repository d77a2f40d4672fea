"""What stands between two tokens, by counts alone: a baseline for models that fill in blanks.

With a to the left, c to the right and n how often training text has something,

    P(b | a) = (n(a b) + T(a .) P(b)) / (n(a .) + T(a .)),    P(b | c) likewise
    P(b | a, c) = (n(a b c) + T(a . c) Q(b)) / (n(a . c) + T(a . c))
    Q(b) ~ P(b | a) P(b | c) / P(b)

where T(a .) is how many tokens follow a (Witten and Bell, 1991), and P(b) is counted with one more
of each token. A neighbour that is hidden, or is none, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.integer[Any]]
Probabilities = npt.NDArray[np.float64]


class Counts:
    """How often each token stood in each context."""

    def __init__(self, contexts: Ids, tokens: Ids, vocabulary: int) -> None:
        pairs, self._counts = np.unique(
            contexts.astype(np.int64) * vocabulary + tokens, return_counts=True
        )
        self._contexts, self._tokens = np.divmod(pairs, vocabulary)

    def sharpen(self, context: int, base: Probabilities) -> Probabilities:
        """(V,): the context's counts; what they leave is shared out by ``base``."""
        begin, end = np.searchsorted(self._contexts, [context, context + 1])
        if begin == end:
            return base
        kinds = end - begin
        found = kinds * base
        found[self._tokens[begin:end]] += self._counts[begin:end]
        probabilities: Probabilities = found / (self._counts[begin:end].sum() + kinds)
        return probabilities


def _runs(texts: Sequence[Ids], length: int) -> list[Ids]:
    """All tokens that begin so many in a row, all that come second, and so on."""
    return [
        np.concatenate([text[at : len(text) - length + 1 + at] for text in texts])
        for at in range(length)
    ]


class Neighbours:
    """P(token | its neighbours)."""

    def __init__(self, alone: Probabilities, left: Counts, right: Counts, both: Counts) -> None:
        self._alone, self._left, self._right, self._both = alone, left, right, both

    @classmethod
    def train(cls, texts: Sequence[Ids], vocabulary: int) -> Self:
        """Count over texts, each by itself."""
        every = np.concatenate(texts)
        alone = np.bincount(every, minlength=vocabulary) + 1.0
        two, three = _runs(texts, 2), _runs(texts, 3)
        return cls(
            alone / alone.sum(),
            Counts(two[0], two[1], vocabulary),
            Counts(two[1], two[0], vocabulary),
            Counts(three[0].astype(np.int64) * vocabulary + three[2], three[1], vocabulary),
        )

    def __call__(self, left: int | None, right: int | None) -> Probabilities:
        """(V,) of what stands between them; None: not known."""
        by_left = self._alone if left is None else self._left.sharpen(left, self._alone)
        if right is None:
            return by_left
        by_right = self._right.sharpen(right, self._alone)
        if left is None:
            return by_right
        together = by_left * by_right / self._alone
        return self._both.sharpen(left * len(self._alone) + right, together / together.sum())
