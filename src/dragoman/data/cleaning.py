"""This module selects the sentence pairs that are fit to learn from. Each filter has a name, and
each dropped pair is counted under the first filter that it fails, with its line number. For single
texts only the target side is checked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, TypeAdapter, field_validator

from dragoman.base.errors import DataError
from dragoman.base.reading import LONE_SURROGATE, readable
from dragoman.base.settings import Settings
from dragoman.base.wording import shorten
from dragoman.forms.form import Pair

_EXAMPLES = 3
_SHOWN_CHARACTERS = 120
_RECENT = 1 << 20
_REMEMBERED = 1 << 26
"""At most this many different pairs are remembered: 64 million, in 8 bytes each."""
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""Unicode category Cc without the tab, which most people use as a space."""
_CONTROL_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""The control characters of a text that may have several lines."""


class CleaningSettings(Settings):
    """Which pairs are dropped before training. Lengths are in characters."""

    invalid_utf8: bool = True
    """Drop pairs with bytes that are not valid UTF-8. If such pairs are kept, the bytes are read as
    U+FFFD."""
    control_characters: bool = True
    """Drop pairs with control characters other than tabs; in tasks with one text per example,
    newlines are allowed too."""
    empty: bool = True
    """Drop pairs with a side that is empty or contains only spaces."""
    max_length: int = Field(2000, ge=0, le=1_000_000_000)
    """Drop pairs with a side that has more characters than this. 0: no limit."""
    max_length_ratio: float = Field(9.0, ge=0, le=1_000_000)
    """Drop pairs with one side more than this many times as long as the other, in characters. 0: no
    limit."""
    identical: bool = True
    """Drop pairs whose sides are identical."""
    duplicates: bool = True
    """Drop exact duplicates of the last 32 million different pairs, and of some earlier ones."""

    @field_validator("max_length_ratio")
    @classmethod
    def _possible(cls, ratio: float) -> float:
        if 0 < ratio < 1:
            raise ValueError("the ratio is always at least 1. Set 0 to switch this filter off")
        return ratio


@dataclass(frozen=True)
class DroppedPair:
    """A pair that a filter dropped, shortened for showing."""

    corpus: str
    line: int
    source: str
    target: str


@dataclass
class Dropped:
    """The number of pairs that one filter dropped, and the first of them."""

    count: int = 0
    first: list[DroppedPair] = field(default_factory=list)


@dataclass
class CleaningReport:
    """The number of pairs that were read and kept, and that each filter dropped."""

    read: int = 0
    kept: int = 0
    filters: dict[str, Dropped] = field(default_factory=dict)

    def table(self) -> str:
        """Return the report as plain text for people."""
        width = max(map(len, [*self.filters, "read"]))
        rows = [f"{'read':<{width}}  {self.read:>12,}"]
        for name, dropped in self.filters.items():
            rows.append(f"{name:<{width}}  {-dropped.count:>12,}")
            rows.extend(
                f"    {pair.corpus + ', ' if pair.corpus else ''}line {pair.line}: "
                f"{pair.source!r} | {pair.target!r}"
                for pair in dropped.first
            )
        rows.append(f"{'kept':<{width}}  {self.kept:>12,}")
        return "\n".join(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> CleaningReport:
        """Return the report that ``to_dict`` gave."""
        return TypeAdapter(cls).validate_python(fields)

    def add(self, other: CleaningReport) -> None:
        """Add the counts of pairs that were read after these by a cleaner of the same settings."""
        self.read += other.read
        self.kept += other.kept
        for name, dropped in other.filters.items():
            own = self.filters.setdefault(name, Dropped())
            own.count += dropped.count
            own.first = [*own.first, *dropped.first][:_EXAMPLES]

    def summary(self) -> str:
        """Return one line with the number of pairs that each filter dropped."""
        dropped = [f"{name} {d.count:,}" for name, d in self.filters.items() if d.count]
        return ", ".join(dropped) or "nothing dropped"


class Cleaner:
    """This class drops pairs and counts them. One cleaner serves all corpora of a training set."""

    def __init__(
        self, settings: CleaningSettings, sides: Sequence[str] = ("source", "target")
    ) -> None:
        """``sides`` are the sides that the examples have."""
        self._filters = _filters(settings, sides)
        self.report = CleaningReport(filters={name: Dropped() for name in self._filters})
        """The counts so far; they grow while pairs are read."""

    def pairs(self, pairs: Iterable[Pair], corpus: str = "") -> Iterator[Pair]:
        """Yield the pairs that pass, unchanged.

        Raises DataError at the end if no pair passed.
        """
        before = self.report.kept
        yield from self.some_pairs(pairs, corpus)
        if self.report.kept == before:
            raise nothing_left(self.report, corpus)

    def some_pairs(self, pairs: Iterable[Pair], corpus: str = "") -> Iterator[Pair]:
        """Yield the pairs of a part of a corpus that pass; there may be none."""
        for pair in pairs:
            self.report.read += 1
            for name, fails in self._filters.items():
                if fails(pair):
                    self.drop(name, pair, corpus)
                    break
            else:
                self.report.kept += 1
                yield pair

    def drop(self, name: str, pair: Pair, corpus: str) -> None:
        """Count a pair under the filter of that name."""
        dropped = self.report.filters[name]
        dropped.count += 1
        if len(dropped.first) < _EXAMPLES:
            shown = DroppedPair(corpus, pair.line, _shorten(pair.source), _shorten(pair.target))
            dropped.first.append(shown)


def nothing_left(report: CleaningReport, corpus: str) -> DataError:
    """Return the error for a corpus of which no pair passes. ``report`` includes this corpus."""
    return DataError(
        f"{corpus or 'this corpus'}: cleaning left no pair at all "
        f"({report.summary()}). First of them:\n{report.table()}"
    )


def _filters(settings: CleaningSettings, sides: Sequence[str]) -> dict[str, Callable[[Pair], bool]]:
    """Return the active filters in the order of their use. True drops the pair."""
    filters: dict[str, Callable[[Pair], bool]] = {}
    paired = len(sides) > 1
    if settings.invalid_utf8:
        filters["invalid_utf8"] = lambda pair: _has(LONE_SURROGATE, pair)
    if settings.control_characters:
        control = _CONTROL if paired else _CONTROL_IN_TEXT
        filters["control_characters"] = lambda pair: _has(control, pair)
    if settings.empty:
        filters["empty"] = lambda pair: not all(getattr(pair, side).strip() for side in sides)
    if longest := settings.max_length:
        filters["length"] = lambda pair: max(len(pair.source), len(pair.target)) > longest
    if paired and (ratio := settings.max_length_ratio):
        filters["length_ratio"] = lambda pair: _ratio(pair) > ratio
    if paired and settings.identical:
        filters["identical"] = lambda pair: pair.source.strip() == pair.target.strip()
    if settings.duplicates:
        seen = _Seen()
        filters["duplicates"] = lambda pair: not seen.add(pair_hash(pair))
    return filters


def _has(pattern: re.Pattern[str], pair: Pair) -> bool:
    return bool(pattern.search(pair.source) or pattern.search(pair.target))


def _ratio(pair: Pair) -> float:
    short, long = sorted((len(pair.source), len(pair.target)))
    return long / max(short, 1)


def pair_hash(pair: Pair) -> int:
    """Return a hash of 64 bits that finds duplicates."""
    both = f"{len(pair.source)} {pair.source}{pair.target}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(both, digest_size=8).digest(), "little")


class _Seen:
    """A set of 64-bit hashes in 8 bytes each, which forgets the oldest half when it is full."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        # Both are sorted; the older generation is dropped when the younger one is full.
        self._younger: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._older: npt.NDArray[np.uint64] = np.empty(0, np.uint64)

    def add(self, value: int) -> bool:
        """Add the value; return True if it is new."""
        if (
            value in self._recent
            or self._holds(self._younger, value)
            or self._holds(self._older, value)
        ):
            return False
        self._recent.add(value)
        if len(self._recent) >= _RECENT:
            recent = np.fromiter(self._recent, np.uint64, len(self._recent))
            self._younger = np.sort(np.concatenate([self._younger, recent]))
            self._recent.clear()
            if len(self._younger) >= _REMEMBERED // 2:
                self._older, self._younger = self._younger, np.empty(0, np.uint64)
        return True

    @staticmethod
    def _holds(values: npt.NDArray[np.uint64], value: int) -> bool:
        place = values.searchsorted(np.uint64(value)) if len(values) else 0
        return bool(place < len(values) and values[place] == value)


def _shorten(text: str) -> str:
    """Return the text shortened, and safe to print on any terminal."""
    return shorten(readable(text), _SHOWN_CHARACTERS)
