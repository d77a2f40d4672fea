"""The form of a source that is rows of numbers: a raw example names a file, whose content
becomes rows (T, F). They have no end symbol, and no model writes them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError
from dragoman.forms.form import Form, Passage, Piece, Values
from dragoman.sources.shared.files import File
from dragoman.sources.shared.settings import RowsSource

Rows = npt.NDArray[Any]
"""(T, F) in the form's own type."""

MOST_ROWS = 1_000_000
"""The most rows of a source: nearly three hours of sound in frames of 10 ms."""
_VERSION = 1
"""The version of the computation; stores of another version are made again."""


@dataclass(frozen=True)
class Extent:
    """The amount of data in a file, from its header."""

    seconds: float = 0.0
    """The length of a sound in seconds."""
    height: int = 0
    """The height of a picture in pixels, in the camera's orientation."""
    width: int = 0

    @property
    def pixels(self) -> int:
        return self.height * self.width


MOST_CELLS = 1_024
"""The most cells of a file."""


@dataclass(frozen=True)
class Cells(ABC):
    """The parts of a file that can be hidden, in a grid, numbered row by row from the top. A
    hidden cell gets the mean of its surroundings (Zeiler and Fergus, 2014, section 4.2), so this
    works for every kind of model; the change in the output shows the effect of the cell."""

    rows: int
    columns: int
    read: int
    """The number of rows of the form that the model reads."""

    @property
    def count(self) -> int:
        """The number of cells of the whole file."""
        return self.rows * self.columns

    @property
    def count_read(self) -> int:
        """The number of cells that the model reads."""
        return self.count

    @abstractmethod
    def without(self, values: Rows, hidden: Sequence[int]) -> Rows:
        """Return a copy of the rows of the file with some cells hidden."""

    @abstractmethod
    def row_of(self, cell: int, rows: int) -> int:
        """Return which of the model's ``rows`` corresponds to a cell."""

    @abstractmethod
    def spread(self, rows: int) -> tuple[int, int]:
        """Return the grid in which this many rows of a model are displayed: from top to bottom,
        and from left to right."""


class RowsForm(Form):
    """The form of rows of numbers, which are read and never written."""

    spaced = False
    units = "rows"
    settings: RowsSource
    encoded_together = 8

    @property
    def width(self) -> int:
        return self.settings.row_width

    @abstractmethod
    def rows(self, raw: str) -> Rows:
        """Return the (T, F) rows of one file. Errors: ``DataError`` for an unusable file."""

    @abstractmethod
    def check_library(self) -> None:
        """Raise ``DataError`` if the library that decodes files is not installed."""

    @abstractmethod
    def extent(self, file: File) -> Extent:
        """Return how much there is to decode in a file. Errors: ``DataError`` for a file that
        cannot be used."""

    @abstractmethod
    def in_turns(self, file: File, most: int | None = None) -> Iterator[Rows | None]:
        """Yield None after each step of reading a file, and finally its rows. Errors:
        ``DataError`` as ``rows``, also for more rows than ``most``."""

    @abstractmethod
    def picture(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Return (H, W, C) pixels that show what the model reads."""

    def cells(self, read: int) -> Cells | None:
        """Return the cells of a file with this many read rows; None if none can be hidden."""
        return None

    def beginning(self, raw: str, values: int) -> str:
        """Return the whole raw example, which is the name of a file."""
        return raw

    def far_too_long(self, raw: str, values: int) -> bool:
        return False

    def arrays(self, given: Sequence[Sequence[int] | Values]) -> list[Values]:
        return [np.asarray(rows) for rows in given]

    def encode(self, raws: Sequence[str]) -> list[Rows]:
        return [self.rows(raw) for raw in raws]

    def read(self, raws: Sequence[str]) -> list[Rows]:
        return self.encode(raws)

    def check(self, raws: Iterable[str]) -> None:
        for raw in raws:
            self.rows(raw)

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the settings that rows depend on."""
        key = f"{_VERSION} {self.settings.model_dump_json(exclude=set(self.settings.of_front_end))}"
        return hashlib.sha256(key.encode()).hexdigest()

    def save(self, path: Path) -> None:
        """The recipe contains everything, so nothing is saved."""

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        return [Passage("", (Piece(raw, "", self.rows(raw)),)) for raw in raws]

    def longest_output(self, length: int, extra: int) -> int:
        """Return the number of rows in the model, plus ``extra``."""
        return -(-length // self.settings.shortens) + extra

    # ---- methods that only tokens need

    size = 0

    @property
    def end(self) -> None:
        return None

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        raise NotImplementedError("rows are not tokens")

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        raise NotImplementedError("rows are not written")

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        raise NotImplementedError("rows are not tokens")


def input_of(source: Form) -> int | RowsSource:
    """Return the input that a model for this source is made for: the number of tokens, or the
    settings of rows."""
    return source.settings if isinstance(source, RowsForm) else source.size


def check_count(raw: str, rows: int, noun: str, most: int | None = None) -> None:
    """Raise ``DataError`` for a source of more rows than ``MOST_ROWS``, or than ``most``."""
    most = MOST_ROWS if most is None else most
    if rows > most:
        raise DataError(f"{raw} has {rows:,} {noun}; at most {most:,} are allowed. Split it")


def low(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float16]:
    """Return rows as they are stored: in half of the memory, to three digits."""
    limit = np.finfo(np.float16).max
    return np.clip(rows, -limit, limit).astype(np.float16)
