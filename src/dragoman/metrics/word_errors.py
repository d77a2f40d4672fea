"""How much of a text is written otherwise than it was said: word and character error rate.

    WER = (S + D + I) / N

S words are written as others, D are left out, I are added, and the reference has N: the least such
changes that make the reference of what was written (Levenshtein, 1966). All texts count together,
so that long ones weigh more; a rate may be above 100 %. Words are what stands between spaces, just
as it is written: case and punctuation count. CER is the same of characters, spaces among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dragoman.plural import plural
from dragoman.reading import readable

SIGNATURE = "words between spaces, case and punctuation count"
"""How the rates are computed."""

Change = Literal["right", "substituted", "deleted", "inserted"]
Step = tuple[Change, str, str]
"""A change with what stands in the reference and what was written; "" where nothing does."""

_WORST = 5
"""Texts that are shown aligned."""
_MOST_CELLS = 1 << 24
"""Of the table of one pair of texts; longer ones are compared in parts."""
_MARKS = {"right": "", "substituted": "S", "deleted": "D", "inserted": "I"}
_WIDTH = 100
"""Characters of a line of aligned text."""


@dataclass(frozen=True, slots=True)
class ErrorCounts:
    """The changes of some texts, in words or in characters."""

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    reference: int = 0
    """N: words or characters that were said."""

    def __add__(self, other: ErrorCounts) -> ErrorCounts:
        return ErrorCounts(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.reference + other.reference,
        )

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """In percent. Where nothing was said, each insertion counts as a whole text."""
        return 100 * self.errors / max(1, self.reference)

    def summary(self, noun: str) -> str:
        """In words; ``noun``: what is counted."""
        counts = (
            plural(self.substitutions, "substitution"),
            plural(self.deletions, "deletion"),
            plural(self.insertions, "insertion"),
        )
        return f"{', '.join(counts)} in {plural(self.reference, noun)}"

    def to_dict(self) -> dict[str, int]:
        """As plain values, for JSON."""
        return {
            "substitutions": self.substitutions,
            "deletions": self.deletions,
            "insertions": self.insertions,
            "reference": self.reference,
        }


@dataclass(frozen=True)
class WordErrors:
    """Both rates of some texts, and where the errors are."""

    words: ErrorCounts
    characters: ErrorCounts
    by_text: tuple[ErrorCounts, ...]
    """The words of each text."""
    references: Sequence[str]
    hypotheses: Sequence[str]

    @classmethod
    def of(cls, references: Sequence[str], hypotheses: Sequence[str]) -> WordErrors:
        """``references``: what was said, ``hypotheses``: what was written, one for one."""
        characters, by_text = ErrorCounts(), list[ErrorCounts]()
        for said, written in zip(references, hypotheses, strict=True):
            by_text.append(counted(said.split(), written.split()))
            characters += counted(list(said.strip()), list(written.strip()))
        words = sum(by_text, ErrorCounts())
        return cls(words, characters, tuple(by_text), references, hypotheses)

    @property
    def without_error(self) -> int:
        """How many texts are as they were said."""
        return sum(not one.errors for one in self.by_text)

    def worst(self) -> list[int]:
        """The places of the texts with the most wrong words, the worst first."""
        wrong = [place for place, one in enumerate(self.by_text) if one.errors]
        return sorted(wrong, key=lambda place: -self.by_text[place].errors)[:_WORST]

    def table(self, names: Sequence[str], noun: str = "recording") -> str:
        """Plain text: the rates, and the worst texts aligned. ``names``: of the texts; ``noun``:
        what each was read of."""
        count = len(self.by_text)
        lines = [
            f"WER {self.words.rate:>7.2f} %  {self.words.summary('word')}",
            f"CER {self.characters.rate:>7.2f} %  {self.characters.summary('character')}",
            f"{self.without_error:,} of {plural(count, noun)} without an error",
        ]
        for place in self.worst():
            lines += ["", f"{readable(names[place])}: {self.by_text[place].summary('word')}"]
            steps = aligned(self.references[place].split(), self.hypotheses[place].split())
            lines += shown(steps, is_sound=noun == "recording")
        return "\n".join(lines)

    def to_dict(self, names: Sequence[str], noun: str = "recording") -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "words": self.words.to_dict(),
            "characters": self.characters.to_dict(),
            "without_error": self.without_error,
            "worst": [
                {
                    noun: names[place],
                    "reference": self.references[place],
                    "hypothesis": self.hypotheses[place],
                    **self.by_text[place].to_dict(),
                }
                for place in self.worst()
            ],
        }


def counted(said: Sequence[str], written: Sequence[str]) -> ErrorCounts:
    """The changes of one text, in whatever it is a sequence of."""
    found = [change for change, _, _ in aligned(said, written)]
    return ErrorCounts(
        found.count("substituted"), found.count("deleted"), found.count("inserted"), len(said)
    )


def aligned(said: Sequence[str], written: Sequence[str]) -> list[Step]:
    """The least changes that make ``written`` of ``said``, in their order.

    Of several ways with as few, one is taken, and the same each time. Texts too long for one
    table are cut into parts of like shares, which may add changes at each cut.
    """
    cells = (len(said) + 1) * (len(written) + 1)
    if cells > _MOST_CELLS and len(said) > 1:
        half, other = len(said) // 2, len(written) // 2
        return aligned(said[:half], written[:other]) + aligned(said[half:], written[other:])
    distances = _distances(said, written)
    steps, row, column = list[Step](), len(said), len(written)
    while row or column:
        here = distances[row, column]
        if row and column:
            one, other_one = said[row - 1], written[column - 1]
            if here == distances[row - 1, column - 1] + (one != other_one):
                steps.append(("right" if one == other_one else "substituted", one, other_one))
                row, column = row - 1, column - 1
                continue
        if row and here == distances[row - 1, column] + 1:
            steps.append(("deleted", said[row - 1], ""))
            row -= 1
        else:
            steps.append(("inserted", "", written[column - 1]))
            column -= 1
    return steps[::-1]


def _distances(said: Sequence[str], written: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """(R + 1, H + 1): the least changes from the first r to the first h."""
    numbers: dict[str, int] = {}
    one = np.array([numbers.setdefault(x, len(numbers)) for x in said], np.int32)
    other = np.array([numbers.setdefault(x, len(numbers)) for x in written], np.int32)
    places = np.arange(len(other) + 1, dtype=np.int32)
    table = np.empty((len(one) + 1, len(other) + 1), np.int32)
    table[0] = places
    for row, symbol in enumerate(one, 1):
        before, here = table[row - 1], table[row]
        here[0] = row
        np.minimum(before[1:] + 1, before[:-1] + (other != symbol), out=here[1:])
        # An insertion costs one for each place: d[j] - j is the least of those up to j.
        here[:] = np.minimum.accumulate(here - places) + places
    return table


def shown(steps: Sequence[Step], *, is_sound: bool = True) -> list[str]:
    """Reference, what was written and the kind of each change below each other; long texts in
    several lines."""
    lines: list[str] = []
    told = ("said", "heard") if is_sound else ("is", "read")
    rows = [*(f"  {one:<7}" for one in told), " " * 9]
    begun = rows
    for change, said, written in steps:
        one, other = readable(said), readable(written)
        width = max(len(one), len(other), 1)
        if len(begun[0]) + width > _WIDTH and begun is not rows:
            lines += [line.rstrip() for line in begun]
            begun = rows
        cells = (one or "*" * width, other or "*" * width, _MARKS[change])
        begun = [f"{line} {cell:<{width}}" for line, cell in zip(begun, cells, strict=True)]
    return lines + [line.rstrip() for line in begun]
