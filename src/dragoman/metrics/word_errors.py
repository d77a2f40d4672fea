"""Word and character error rates of transcripts, and tests of whether one run hears better than
another, or was luckier with the speakers of this test set.

    WER = (S + D + I) / N

S words are written as others, D are left out, I are added, and the reference has N: the least such
changes that make the reference of what was written (Levenshtein, 1966). All texts count together,
so that long ones weigh more; a rate may be above 100 %. Words are what stands between spaces, just
as it is written: case and punctuation count. CER is the same of characters, spaces among them. Both
sides are composed first (NFC).

The tests are those of ``significance.py``. The recordings of one speaker resemble each other, so
that an interval over recordings alone is too narrow: where speakers are known, whole speakers are
drawn or exchanged, with all their recordings (a bootstrap of blocks; Liu and Peng, 2020,
"Statistical Testing on ASR Performance via Blockwise Bootstrap").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from dragoman.base.reading import readable
from dragoman.base.wording import plural
from dragoman.metrics.significance import (
    MeasuredSystem,
    Significance,
    Test,
    compare_statistics,
)
from dragoman.metrics.translation import compose, form_of

SIGNATURE = "words between spaces; case and punctuation count"
"""A phrase that says how the rates are computed."""

Change = Literal["right", "substituted", "deleted", "inserted"]
Step = tuple[Change, str, str]
"""A change with the symbols of the reference and of the transcript; "" for none."""

_WORST = 5
"""The number of texts that are shown aligned."""
_CHANGES: dict[str, Change] = {
    "equal": "right", "replace": "substituted", "delete": "deleted", "insert": "inserted",
}  # fmt: skip
"""The change for each name of RapidFuzz."""
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
        """The counts as plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class WordErrors:
    """Both rates of some texts, and where the errors are."""

    by_text: tuple[ErrorCounts, ...]
    """The counts of the words of each text."""
    characters_by_text: tuple[ErrorCounts, ...]
    references: Sequence[str]
    hypotheses: Sequence[str]
    signature: str

    @classmethod
    def of(cls, references: Sequence[str], hypotheses: Sequence[str]) -> WordErrors:
        """``references``: what was said, ``hypotheses``: what was written, one for one."""
        signature = SIGNATURE + form_of(references, hypotheses)
        references, hypotheses = compose(references), compose(hypotheses)
        both = list(zip(references, hypotheses, strict=True))
        words = tuple(tally(said.split(), written.split()) for said, written in both)
        letters = tuple(tally(list(said.strip()), list(written.strip())) for said, written in both)
        return cls(words, letters, references, hypotheses, signature)

    @property
    def words(self) -> ErrorCounts:
        """The counts of the words of all texts together."""
        return sum(self.by_text, ErrorCounts())

    @property
    def characters(self) -> ErrorCounts:
        """The counts of the characters of all texts together."""
        return sum(self.characters_by_text, ErrorCounts())

    @property
    def without_error(self) -> int:
        """The number of texts that were written without error."""
        return sum(not counts.errors for counts in self.by_text)

    def worst(self) -> list[int]:
        """The places of the texts with the most wrong words, the worst first."""
        wrong = [place for place, counts in enumerate(self.by_text) if counts.errors]
        return sorted(wrong, key=lambda place: -self.by_text[place].errors)[:_WORST]

    def table(self, names: Sequence[str], noun: str = "recording") -> str:
        """Plain text: the rates, and the worst texts aligned. ``names``: of the texts; ``noun``:
        what each was read of."""
        count = len(self.by_text)
        lines = [
            f"WER {self.words.rate:>7.2f} %  {self.words.summary('word')}",
            f"CER {self.characters.rate:>7.2f} %  {self.characters.summary('character')}",
            f"{self.without_error:,} of {plural(count, noun)} without an error",
            *([self.signature] if self.signature != SIGNATURE else []),
        ]
        for place in self.worst():
            lines += ["", f"{readable(names[place])}: {self.by_text[place].summary('word')}"]
            steps = align(self.references[place].split(), self.hypotheses[place].split())
            lines += as_lines(steps, is_sound=noun == "recording")
        return "\n".join(lines)

    def to_dict(self, names: Sequence[str], noun: str = "recording") -> dict[str, Any]:
        """The rates and the worst texts as plain values, for JSON."""
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


def tally(said: Sequence[str], written: Sequence[str]) -> ErrorCounts:
    """The changes of one text, in whatever it is a sequence of."""
    changes = [change for change, _, _ in align(said, written)]
    return ErrorCounts(
        changes.count("substituted"), changes.count("deleted"), changes.count("inserted"), len(said)
    )


def align(said: Sequence[str], written: Sequence[str]) -> list[Step]:
    """The least changes that make ``written`` of ``said``, in their order. Of several ways with as
    few changes, the same one is taken each time, as jiwer does."""
    steps = list[Step]()
    for code in Levenshtein.opcodes(said, written):
        before, after = (
            said[code.src_start : code.src_end],
            written[code.dest_start : code.dest_end],
        )
        both = zip_longest(before, after, fillvalue="")
        steps += [(_CHANGES[code.tag], old, new) for old, new in both]
    return steps


def as_lines(steps: Sequence[Step], *, is_sound: bool = True) -> list[str]:
    """Reference, what was written and the kind of each change below each other; long texts in
    several lines."""
    lines: list[str] = []
    names = ("said", "heard") if is_sound else ("is", "read")
    rows = [*(f"  {name:<7}" for name in names), " " * 9]
    begun = rows
    for change, said, written in steps:
        old, new = readable(said), readable(written)
        width = max(len(old), len(new), 1)
        if len(begun[0]) + width > _WIDTH and begun is not rows:
            lines += [line.rstrip() for line in begun]
            begun = rows
        cells = (old or "*" * width, new or "*" * width, _MARKS[change])
        begun = [f"{line} {cell:<{width}}" for line, cell in zip(begun, cells, strict=True)]
    return lines + [line.rstrip() for line in begun]


CHARACTERS_SIGNATURE = "characters with spaces; case and punctuation count"

_Array = NDArray[np.float64]


def compare_word_errors(
    systems: Mapping[str, Sequence[Sequence[str]]],
    references: Sequence[str],
    groups: Sequence[str],
    test: Test = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
    noun: str = "recording",
) -> Significance:
    """Test each system against the first one, by WER and CER.

    ``systems``: as ``compare_systems`` takes them. ``groups``: the speaker of each recording;
    where each has its own, nothing is known of them. ``noun``: what is read, one of it.
    Errors: ``DataError`` for an exchange of outputs with a system of several runs.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    by_speaker = 1 < len(numbers) < len(groups)
    rows = [numbers[group] for group in groups] if by_speaker else list(range(len(groups)))
    form = form_of(references, *(lines for runs in systems.values() for lines in runs))
    words: list[list[_Array]] = []
    characters: list[list[_Array]] = []
    for runs in systems.values():
        errors = [WordErrors.of(references, hypotheses) for hypotheses in runs]
        words.append([_sum_rows(run.by_text, rows) for run in errors])
        characters.append([_sum_rows(run.characters_by_text, rows) for run in errors])
    measured = {
        "WER": MeasuredSystem(words, _rates, SIGNATURE + form, less_is_better=True),
        "CER": MeasuredSystem(characters, _rates, CHARACTERS_SIGNATURE + form, less_is_better=True),
    }
    notes = [f"{plural(len(groups), noun)}: whole speakers are drawn"] if by_speaker else []
    unit = "speaker" if by_speaker else noun
    return compare_statistics(list(systems), measured, test, samples, seed, tuple(notes), unit)


def chance_of_word_errors(references: Sequence[str], learned: Sequence[str]) -> float:
    """The WER, in percent, of a run that hears the same in each recording: nothing, or the most
    frequent text of those that it has ``learned`` from."""
    references, learned = compose(references), compose(learned)
    counts = Counter(" ".join(said.split()) for said in learned)
    usual = max(counts, key=counts.__getitem__, default="")
    errors = [tally(reference.split(), usual.split()) for reference in references]
    wrong = sum(text.errors for text in errors)
    return min(100.0, 100 * wrong / max(1, sum(text.reference for text in errors)))


def _sum_rows(counts: Sequence[ErrorCounts], rows: Sequence[int]) -> _Array:
    """(G, 2): errors and length; ``rows`` says to which of the G each text belongs."""
    sums = np.zeros((max(rows) + 1, 2))
    np.add.at(sums, list(rows), [(count.errors, count.reference) for count in counts])
    return sums


def _rates(sums: NDArray[Any]) -> _Array:
    """Errors per 100 words or characters that were said."""
    return np.asarray(100 * sums[:, 0] / np.maximum(1, sums[:, 1]))
