"""Accuracy of tags over all words and over known and unknown words; precision, recall and F1 of
spans.

A span counts as right if its kind, its first and its last word are right. IOB tags (``B-X`` begins
a span of the kind X, ``I-X`` continues it, ``O`` is outside) are read as ``conlleval`` of CoNLL
2000 reads them: an ``I-X`` after ``O``, or after a span of another kind, begins a span too. BIOES
tags, also called IOBES (``E-X`` is the last word of a span, ``S-X`` the only one), and BILOU tags
(which write ``L-X`` and ``U-X`` for these two) are read as ``seqeval`` reads them: no span
continues after ``E-X`` or ``S-X``.

    precision = right / found,  recall = right / there,  F1 = 2 right / (found + there)

Values are shares, 0 to 1; a share of nothing is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dragoman.metrics.classification import Matches, Place, add_matches, matches_of

_MARKS = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}
"""Prefixes of all schemes in terms of BIOES: begins, continues, ends, is a single word."""


def has_spans(tags: Iterable[str]) -> bool:
    """Return whether tags mark spans: ``B-X``, ``I-X`` and so on, and no other tag than ``O``."""
    different = set(tags)
    of_spans = {tag for tag in different if tag[:1] in _MARKS and tag[1:2] == "-" and len(tag) > 2}
    return bool(of_spans) and different - of_spans <= {"O"}


def spans_of(tags: Sequence[str]) -> list[Place]:
    """The spans of a sentence, in their order."""
    spans: list[Place] = []
    kind, begin = "", -1
    for place, tag in enumerate([*tags, "O"]):
        letter, _, name = tag.partition("-")
        mark = _MARKS.get(letter, "O")
        if begin >= 0 and (mark not in ("I", "E") or name != kind):
            spans.append((kind, begin, place))
            begin = -1
        if mark != "O" and begin < 0:
            kind, begin = name, place
        if mark in ("E", "S"):
            spans.append((kind, begin, place + 1))
            begin = -1
    return spans


@dataclass
class TagScores:
    """Counts of right tags in some sentences."""

    known: list[int] = field(default_factory=lambda: [0, 0])
    """Known words (those in the training text): right ones, and all."""
    unknown: list[int] = field(default_factory=lambda: [0, 0])
    spans: dict[str, Matches] | None = None
    """The spans of each kind; None if the tags do not mark spans."""

    @classmethod
    def of(
        cls,
        true: Iterable[Sequence[str]],
        chosen: Iterable[Sequence[str]],
        known: Iterable[Sequence[bool]],
        spans: bool,
    ) -> TagScores:
        """Score some sentences: their tags, the chosen tags, and whether each word is known."""
        scores = cls(spans={} if spans else None)
        for own, guesses, are_known in zip(true, chosen, known, strict=True):
            for tag, guess, is_known in zip(own, guesses, are_known, strict=True):
                counts = scores.known if is_known else scores.unknown
                counts[0] += tag == guess
                counts[1] += 1
            if scores.spans is not None:
                add_matches(scores.spans, matches_of(spans_of(guesses), spans_of(own)))
        return scores

    @property
    def words(self) -> int:
        """The number of words that were tagged."""
        return self.known[1] + self.unknown[1]

    @property
    def accuracy(self) -> float:
        """The share of words with the right tag."""
        return (self.known[0] + self.unknown[0]) / max(1, self.words)

    def figures(self) -> dict[str, float]:
        """Scores by name, in percent; scores of nothing are left out."""
        scores = {"accuracy": self.accuracy}
        for name, (right, every) in (("known", self.known), ("unknown", self.unknown)):
            if every:
                scores[name] = right / every
        if self.spans is not None:
            whole = sum(self.spans.values(), Matches())
            scores |= {"f1": whole.f1, "precision": whole.precision, "recall": whole.recall}
        return {name: 100 * value for name, value in scores.items()}
