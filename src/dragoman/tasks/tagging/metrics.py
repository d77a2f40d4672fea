"""How often a tag is the right one: over all words, over known and unknown ones, and over spans.

Where tags are of spans, a span counts as found if its kind, its first and its last word are right.
IOB tags (``B-X`` begins a span of the kind X, ``I-X`` goes on with it, ``O`` is outside) are read
as ``conlleval`` of CoNLL 2000 reads them: an ``I-X`` behind ``O``, or behind a span of another
kind, begins one too. BIOES tags, also called IOBES (``E-X`` is the last word of a span, ``S-X`` the
only one), and BILOU tags (``L-X`` and ``U-X`` in their place) are read as ``seqeval`` reads
them: nothing goes on behind ``E-X`` or ``S-X``.

    precision = right / found,  recall = right / there,  F1 = 2 right / (found + there)

Values are shares, 0 to 1; what is divided by nothing is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

Span = tuple[str, int, int]
"""Its kind, its first word and the one behind its last."""


_MARKS = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}
"""What stands before the kind: begins, goes on, ends, is one word; by the names of each scheme."""


def has_spans(tags: Iterable[str]) -> bool:
    """Whether tags are of spans: ``O`` and ``B-X``, ``I-X`` and so on, and at least one of the
    latter."""
    different = set(tags)
    of_spans = {tag for tag in different if tag[:1] in _MARKS and tag[1:2] == "-" and len(tag) > 2}
    return bool(of_spans) and different - of_spans <= {"O"}


def spans_of(tags: Sequence[str]) -> list[Span]:
    """The spans of a sentence, in their order."""
    spans: list[Span] = []
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


@dataclass(frozen=True)
class SpanCounts:
    """Spans of one kind, or of all."""

    right: int = 0
    found: int = 0
    there: int = 0

    @property
    def precision(self) -> float:
        """Of those that were found, the share that is there."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Of those that are there, the share that was found."""
        return self.right / self.there if self.there else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.found + self.there
        return 2 * self.right / both if both else 0.0


@dataclass
class SpanScores:
    """Spans of some sentences, counted by kind."""

    right: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    there: Counter[str] = field(default_factory=Counter)

    def add(self, true: Sequence[str], chosen: Sequence[str]) -> None:
        """Count those of one more sentence."""
        there, found = spans_of(true), spans_of(chosen)
        self.there.update(kind for kind, _, _ in there)
        self.found.update(kind for kind, _, _ in found)
        self.right.update(kind for kind, _, _ in set(there) & set(found))

    @property
    def all(self) -> SpanCounts:
        """Of all kinds."""
        return SpanCounts(self.right.total(), self.found.total(), self.there.total())

    def by_kind(self) -> Iterator[tuple[str, SpanCounts]]:
        """In alphabetical order."""
        for kind in sorted({*self.there, *self.found}):
            yield kind, SpanCounts(self.right[kind], self.found[kind], self.there[kind])


@dataclass
class TagScores:
    """How right the tags of some sentences are."""

    known: list[int] = field(default_factory=lambda: [0, 0])
    """Of words that training has read: right ones, and all."""
    unknown: list[int] = field(default_factory=lambda: [0, 0])
    spans: SpanScores | None = None
    """Where tags are of spans."""

    @classmethod
    def of(
        cls,
        true: Iterable[Sequence[str]],
        chosen: Iterable[Sequence[str]],
        known: Iterable[Sequence[bool]],
        spans: bool,
    ) -> TagScores:
        """Of sentences: their tags, those that were chosen, and which words training has read."""
        scores = cls(spans=SpanScores() if spans else None)
        for own, found, are_known in zip(true, chosen, known, strict=True):
            for one, other, is_known in zip(own, found, are_known, strict=True):
                counts = scores.known if is_known else scores.unknown
                counts[0] += one == other
                counts[1] += 1
            if scores.spans is not None:
                scores.spans.add(own, found)
        return scores

    @property
    def words(self) -> int:
        """How many there are."""
        return self.known[1] + self.unknown[1]

    @property
    def accuracy(self) -> float:
        """The share of words whose tag was chosen."""
        return (self.known[0] + self.unknown[0]) / max(1, self.words)

    def figures(self) -> dict[str, float]:
        """In percent, by name; what there is nothing of is left out."""
        found = {"accuracy": self.accuracy}
        for name, (right, every) in (("known", self.known), ("unknown", self.unknown)):
            if every:
                found[name] = right / every
        if self.spans is not None:
            whole = self.spans.all
            found |= {"f1": whole.f1, "precision": whole.precision, "recall": whole.recall}
        return {name: 100 * value for name, value in found.items()}
