"""A look at parallel text before training: counts, lengths, and what cleaning would drop."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.data.cleaning import Cleaner, CleaningReport
from dragoman.data.corpora import Pair
from dragoman.data.split import side_of
from dragoman.recipe import Recipe
from dragoman.tasks.prepare import training_pairs

_BUCKETS = (0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 10**9)
_BAR = 36
_LONGEST_COUNTED = 10_000


@dataclass
class SideStatistics:
    """One side of the kept pairs. Lengths are in words: what stands between spaces."""

    words: int = 0
    characters: int = 0
    different_words: int = 0
    lengths: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(_LONGEST_COUNTED + 1, np.int64)
    )
    """How many sentences have 0, 1, 2, … words."""

    def quantile(self, share: float) -> int:
        """The length that so many of the sentences do not exceed."""
        reached = self.lengths.cumsum() >= share * self.lengths.sum()
        return int(reached.argmax())


@dataclass(frozen=True)
class DataStatistics:
    """What ``dragoman data show`` says."""

    report: CleaningReport
    sides: dict[str, SideStatistics]
    parts: Counter[str]
    """Kept pairs by part: train, and dev and test where they are held out."""

    def text(self) -> str:
        """For people."""
        kept = max(1, self.report.kept)
        lines = [self.report.table(), ""]
        lines.append(
            "parts    " + ", ".join(f"{name} {count:,}" for name, count in self.parts.items())
        )
        for name, side in self.sides.items():
            lines += [
                "",
                (
                    f"{name}: {side.words:,} words ({side.different_words:,} different), "
                    f"{side.words / kept:.1f} a sentence; {side.characters / kept:.1f} characters"
                ),
                (
                    f"words a sentence: half have at most {side.quantile(0.5)}, 95% at most "
                    f"{side.quantile(0.95)}, the longest {side.quantile(1.0)}"
                ),
                *_histogram(side.lengths),
            ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "cleaning": self.report.to_dict(),
            "parts": dict(self.parts),
            **{
                name: {
                    "words": side.words,
                    "different_words": side.different_words,
                    "characters": side.characters,
                    "length_quantiles": {
                        str(q): side.quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
                    },
                    "lengths": {
                        _named(low, high): int(side.lengths[low:high].sum())
                        for low, high in itertools.pairwise(_BUCKETS)
                    },
                }
                for name, side in self.sides.items()
            },
        }


def inspect_data(recipe: Recipe) -> DataStatistics:
    """Read and clean all training text of a recipe, and count.

    Errors: ``DataError`` for files that cannot be used, ``RecipeError`` for a recipe without text.
    """
    cleaner = Cleaner(recipe.data.cleaning)
    sides = {"source": SideStatistics(), "target": SideStatistics()}
    different: dict[str, set[str]] = {"source": set(), "target": set()}
    parts: Counter[str] = Counter()
    pairs: Iterable[Pair] = training_pairs(recipe, cleaner)
    for pair in pairs:
        parts[side_of(pair.source, recipe.data.split)] += 1
        for name, text in (("source", pair.source), ("target", pair.target)):
            side, words = sides[name], text.split()
            side.words += len(words)
            side.characters += len(text)
            side.lengths[min(len(words), _LONGEST_COUNTED)] += 1
            different[name].update(words)
    for name, side in sides.items():
        side.different_words = len(different[name])
    return DataStatistics(cleaner.report, sides, parts)


def _named(low: int, high: int) -> str:
    return f"{low}-{high - 1}" if high < _BUCKETS[-1] else f"{low}+"


def _histogram(lengths: npt.NDArray[np.int64]) -> list[str]:
    counts = [int(lengths[a:b].sum()) for a, b in itertools.pairwise(_BUCKETS)]
    most = max(1, *counts)
    rows = []
    for low, high, count in zip(_BUCKETS, _BUCKETS[1:], counts, strict=False):
        bar = "█" * round(_BAR * count / most)
        rows.append(f"{_named(low, high):>8}  {bar:<{_BAR}} {count:>10,}")
    while rows and rows[-1].rstrip().endswith(" 0"):
        rows.pop()
    return rows
