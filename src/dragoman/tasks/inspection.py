"""A look at parallel text before training: counts, lengths, and what cleaning would drop."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.base.errors import DataError
from dragoman.data.cleaning import Cleaner, CleaningReport
from dragoman.data.corpus_checks import Doubt
from dragoman.data.split import side_of_pair
from dragoman.forms.form import Pair
from dragoman.forms.identification import can_identify
from dragoman.forms.languages import base, count_spaceless
from dragoman.runs.corpora import doubts_of, new_cleaner, training_pairs
from dragoman.runs.recipe.recipe import Recipe
from dragoman.tasks.catalogue import runtime_of

_WORD_BUCKETS = (0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 10**9)
_CHARACTER_BUCKETS = (0, 10, 20, 30, 40, 60, 80, 120, 160, 240, 10**9)
_BAR = 36
_MAX_COUNTED_LENGTH = 10_000
_MAX_DROPPED = 0.5
"""If cleaning drops more than this share of the examples, something is wrong with them."""
_LABELS_SHOWN, _LONGEST_SHOWN = 30, 60
_SPACELESS = 0.2
"""Above this share of characters from scripts without spaces, characters are counted."""

_KEYS = {"labels of constituents": "constituents"}
"""The JSON key of a count, where it differs from the name in the table."""


class UnitStatistics:
    """Counts of sentences in words, or in characters."""

    def __init__(self, name: str, buckets: Sequence[int]) -> None:
        """``buckets``: the limits of the ranges of lengths in the histogram."""
        self.name = name
        self.total = 0
        self.different: set[str] = set()
        self._buckets = buckets
        # The number of sentences of 0, 1, 2, … words or characters.
        self._lengths = np.zeros(_MAX_COUNTED_LENGTH + 1, np.int64)

    def count(self, length: int, different: Iterable[str]) -> None:
        """Add a sentence of this length. ``different``: its words or characters, for the number of
        different ones."""
        self.total += length
        self._lengths[min(length, _MAX_COUNTED_LENGTH)] += 1
        self.different.update(different)

    @property
    def histogram(self) -> dict[str, int]:
        """The number of sentences in each range of lengths."""
        return {
            _bucket_name(low, high): int(self._lengths[low:high].sum())
            for low, high in itertools.pairwise(self._buckets)
        }

    def quantile(self, share: float) -> int:
        """The length that ``share`` of the sentences do not exceed."""
        reached = self._lengths.cumsum() >= share * self._lengths.sum()
        return int(reached.argmax())


class SideStatistics:
    """Counts of one side of the kept pairs. Words are separated by spaces."""

    def __init__(self) -> None:
        self.words = UnitStatistics("words", _WORD_BUCKETS)
        self.characters = UnitStatistics("characters", _CHARACTER_BUCKETS)
        self._spaceless = 0

    def count(self, text: str) -> None:
        """Add one sentence to the counts."""
        words, spaceless = text.split(), count_spaceless(text)
        self._spaceless += spaceless
        self.words.count(len(words), words)
        # Characters are shown only for scripts without spaces between words.
        self.characters.count(len(text), text if spaceless else "")

    @property
    def shown(self) -> UnitStatistics:
        """The counts in characters if the script puts no spaces between words, else in words."""
        by_characters = self._spaceless > _SPACELESS * self.characters.total
        return self.characters if by_characters else self.words


@dataclass(frozen=True)
class DataStatistics:
    """The statistics that ``dragoman data show`` prints."""

    report: CleaningReport
    sides: dict[str, SideStatistics]
    parts: Counter[str]
    """The number of kept pairs in each part: train, dev and test where they are held out, and
    synthetic."""
    doubts: list[Doubt]
    """Doubts about all files that the recipe names."""
    counted: str
    """What ``counts`` counts, such as labels; empty if the task counts nothing."""
    counts: Counter[str]
    """Elements of the targets: the label of each text, or the brackets of trees without those of
    single words."""
    rare: list[str]
    """The warnings about rare elements of ``counts``."""
    languages_looked_at: bool
    """True if both languages are known and the language of text can be identified as either."""

    @property
    def warnings(self) -> list[str]:
        """All warnings, as sentences for people."""
        dropped = self.report.read - self.report.kept
        warnings = [str(doubt) for doubt in self.doubts]
        if dropped > _MAX_DROPPED * self.report.read:
            warnings.append(
                f"cleaning drops {dropped:,} of {self.report.read:,}. Check the file and the "
                "columns; the table above shows which filters drop them"
            )
        warnings += self.rare
        return warnings

    def text(self) -> str:
        """Return the statistics as plain text."""
        kept = max(1, self.report.kept)
        lines = [self.report.table(), ""]
        lines.append(
            "parts    " + ", ".join(f"{name} {count:,}" for name, count in self.parts.items())
        )
        for name, side in self.sides.items():
            unit = side.shown
            each = f"{unit.total / kept:.1f} a sentence"
            if unit is side.words:
                each += f"; {side.characters.total / kept:.1f} characters"
            lines += [
                "",
                f"{name}: {unit.total:,} {unit.name} ({len(unit.different):,} different), {each}",
                (
                    f"{unit.name} a sentence: half have at most {unit.quantile(0.5)}, 95% at most "
                    f"{unit.quantile(0.95)}, the longest {unit.quantile(1.0)}"
                ),
                *_bars(unit.histogram),
            ]
        if self.counts:
            lines += ["", *_list_counts(self.counted, self.counts)]
        lines.append("")
        lines += [f"warning: {warning}" for warning in self.warnings]
        if not self.warnings and len(self.sides) > 1:
            lines.append(
                "Nothing looks wrong with the encoding, the languages and the alignment."
                if self.languages_looked_at
                else "Nothing looks wrong with the encoding and the alignment. Whether each side "
                "is in its language was not checked. Set both with --languages SOURCE-TARGET"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The statistics as plain values for JSON."""
        return {
            "cleaning": self.report.to_dict(),
            "parts": dict(self.parts),
            "doubts": [doubt.to_dict() for doubt in self.doubts],
            **(
                {_KEYS.get(self.counted, self.counted): dict(self.counts.most_common())}
                if self.counts
                else {}
            ),
            **{
                name: {
                    "words": side.words.total,
                    "characters": side.characters.total,
                    "unit": side.shown.name,
                    "different": len(side.shown.different),
                    "length_quantiles": {
                        str(q): side.shown.quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
                    },
                    "lengths": side.shown.histogram,
                }
                for name, side in self.sides.items()
            },
        }


def inspect_data(recipe: Recipe) -> DataStatistics:
    """Read and clean all training text of a recipe, and count.

    Errors: ``DataError`` for files that cannot be used, ``RecipeError`` for a recipe without text.
    """
    cleaner = new_cleaner(recipe)
    task = recipe.spec
    sides: dict[str, SideStatistics] = {side: SideStatistics() for side in recipe.spec.texts}
    runtime = runtime_of(task)
    counts: Counter[str] = Counter()
    parts = Counter(train=0, dev=0, test=0)  # in this order, whichever comes first
    doubts: list[Doubt] = []
    tags = tuple(f"{corpus.tag} " for corpus in recipe.data.train if corpus.tag)
    for pair in _clean_pairs(recipe, cleaner, doubts):
        is_synthetic = pair.source.startswith(tags)
        parts["synthetic" if is_synthetic else side_of_pair(pair, recipe.data.split)] += 1
        for side, statistics in sides.items():
            statistics.count(getattr(pair, side))
        runtime.count_target(counts, pair)
    doubts += doubts_of(recipe, ("dev", "test"))
    codes = (recipe.languages.source, recipe.languages.target)
    looked_at = all(can_identify(base(code)) for code in codes)
    return DataStatistics(
        cleaner.report, sides, +parts, doubts, runtime.counts, counts,
        runtime.rare_targets(counts), looked_at,
    )  # fmt: skip


def _clean_pairs(recipe: Recipe, cleaner: Cleaner, doubts: list[Doubt]) -> Iterator[Pair]:
    """Yield ``training_pairs``; if none is left, add the doubts about the files to the error."""
    try:
        yield from training_pairs(recipe, cleaner, doubts)
    except DataError as error:
        lines = [f"\nwarning: {doubt}" for doubt in doubts or doubts_of(recipe, ("train",))]
        raise DataError("".join([str(error), *lines])) from error


def _list_counts(name: str, labels: Counter[str]) -> list[str]:
    """List the most frequent labels and their counts."""
    most = labels.most_common(_LABELS_SHOWN)
    lines = [f"{name}: {len(labels):,} different"]
    lines += [f"{count:>10,}  {label[:_LONGEST_SHOWN]}" for label, count in most]
    if len(labels) > len(most):
        lines.append(f"{'':>10}  and {len(labels) - len(most):,} others")
    return lines


def _bucket_name(low: int, high: int) -> str:
    return f"{low}-{high - 1}" if high < _WORD_BUCKETS[-1] else f"{low}+"


def _bars(histogram: dict[str, int]) -> list[str]:
    most = max(1, *histogram.values())
    rows = []
    for name, count in histogram.items():
        bar = "█" * round(_BAR * count / most)
        rows.append(f"{name:>8}  {bar:<{_BAR}} {count:>10,}")
    while rows and rows[-1].rstrip().endswith(" 0"):
        rows.pop()
    return rows
