"""Scores of labels: accuracy, and F1 label by label.

From the table of confusions C, (K, K), true label by chosen label::

    accuracy = Σ_k C[k, k] / Σ C
    precision_k = C[k, k] / Σ_i C[i, k],  recall_k = C[k, k] / Σ_j C[k, j]
    F1_k = 2 C[k, k] / (Σ_i C[i, k] + Σ_j C[k, j]),  macro F1 = mean of F1_k

(Manning, Raghavan and Schütze, 2008, chapters 8.3 and 13.6.) Accuracy counts every text alike,
macro F1 every label alike: of rare labels it says what accuracy hides. What is divided by nothing
is 0. The mean is over the labels that occur, as a text's or as a choice; one that does neither
says nothing of a model. Values are shares, 0 to 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Confusion:
    """Which label some texts have, and which was chosen for them."""

    counts: Counts
    """(K, K): row k are the texts whose label is k, column j those for which j was chosen."""

    @classmethod
    def of(cls, true: Sequence[int], chosen: Sequence[int], labels: int) -> Confusion:
        """From the label of each text and what was chosen for it, of ``labels`` there are."""
        counts = np.zeros((labels, labels), np.int64)
        np.add.at(counts, (np.array(true, np.int64), np.array(chosen, np.int64)), 1)
        return cls(counts)

    @property
    def texts(self) -> int:
        """The number of texts in the table."""
        return int(self.counts.sum())

    @cached_property
    def support(self) -> Counts:
        """(K,) texts that have each label."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def right(self) -> Counts:
        """(K,) of these, for how many it was chosen."""
        return np.asarray(self.counts.diagonal())

    @property
    def accuracy(self) -> float:
        """The share of texts whose label was chosen."""
        return float(self.right.sum() / max(self.texts, 1))

    @cached_property
    def precision(self) -> Shares:
        """(K,) of the texts for which a label was chosen, the share that has it."""
        return _shares(self.right, self.counts.sum(axis=0))

    @cached_property
    def recall(self) -> Shares:
        """(K,) of the texts that have a label, the share for which it was chosen."""
        return _shares(self.right, self.support)

    @cached_property
    def f1(self) -> Shares:
        """(K,) the harmonic mean of both."""
        return _shares(2 * self.right, self.counts.sum(axis=0) + self.support)

    @property
    def macro_f1(self) -> float:
        """The mean of F1 over the labels that occur."""
        occurs = self.counts.sum(axis=0) + self.support > 0
        return float(self.f1[occurs].mean()) if occurs.any() else 0.0

    @property
    def scores(self) -> dict[str, float]:
        """Both figures in percent, by name."""
        return {"accuracy": 100 * self.accuracy, "macro_f1": 100 * self.macro_f1}

    def mistaken(self) -> list[tuple[int, int, int]]:
        """(true, chosen, texts) of every confusion that occurs, the most frequent first."""
        mistakes = [
            (int(true), int(chosen), int(self.counts[true, chosen]))
            for true, chosen in zip(*np.nonzero(self.counts), strict=True)
            if true != chosen
        ]
        return sorted(mistakes, key=lambda cell: (-cell[2], cell[:2]))


def _shares(part: Counts, whole: Counts) -> Shares:
    """Part by whole; 0 where there is nothing to divide by."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


@dataclass(frozen=True)
class Matches:
    """Counts of labelled places, such as brackets or spans of words. Values are shares, 0 to 1."""

    right: int = 0
    """The number of places that are in both."""
    found: int = 0
    """The number of places in the output of a model."""
    there: int = 0
    """The number of places in the reference."""

    def __add__(self, other: Matches) -> Matches:
        return Matches(self.right + other.right, self.found + other.found, self.there + other.there)

    @property
    def precision(self) -> float:
        """The share of the found places that are right."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of the places of the reference that are found."""
        return self.right / self.there if self.there else 0.0

    @property
    def both(self) -> int:
        """The number of places in the output and in the reference together."""
        return self.found + self.there

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.right / self.both if self.both else 0.0


Place = tuple[str, int, int]
"""A label, its first word, and the word after its last."""


def matches_of(output: Iterable[Place], reference: Iterable[Place]) -> dict[str, Matches]:
    """Count the places of one output and its reference, for each label in alphabetical order."""
    given, wanted = Counter(output), Counter(reference)
    counts = [
        Counter(label for label, _, _ in places.elements())
        for places in (given & wanted, given, wanted)
    ]
    labels = sorted({label for label, _, _ in (*given, *wanted)})
    return {label: Matches(*(count[label] for count in counts)) for label in labels}


Key = TypeVar("Key", str, int)


def add_matches(total: dict[Key, Matches], more: Mapping[Key, Matches]) -> None:
    """Add the counts of one more output to ``total``."""
    for label, matches in more.items():
        total[label] = total.get(label, Matches()) + matches


# Over sums of statistics, (M, 3 K) to (M,) in percent, for tests that draw many sets of texts.


def statistics_of(true: Sequence[int], chosen: Sequence[int], labels: int) -> Shares:
    """(N texts, 3 K): whether each label was chosen rightly, was chosen, and is the text's."""
    flags = np.zeros((len(true), 3, labels))
    texts, true_ones, chosen_ones = np.arange(len(true)), np.array(true), np.array(chosen)
    flags[texts, 1, chosen_ones] = flags[texts, 2, true_ones] = 1
    flags[texts, 0, true_ones] = true_ones == chosen_ones
    return flags.reshape(len(true), 3 * labels)


def accuracies(sums: Shares) -> Shares:
    """The accuracy of each row of summed statistics, in percent."""
    right, _, own = np.split(sums, 3, axis=1)
    return np.asarray(100 * right.sum(axis=1) / np.maximum(own.sum(axis=1), 1))


def macro_f1s(sums: Shares) -> Shares:
    """The macro F1 of each row of summed statistics, in percent."""
    right, chosen, own = np.split(sums, 3, axis=1)
    both = chosen + own
    f1 = np.divide(2 * right, both, out=np.zeros_like(both), where=both > 0)
    return np.asarray(100 * f1.sum(axis=1) / np.maximum((both > 0).sum(axis=1), 1))
