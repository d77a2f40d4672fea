"""The form of a source that is rows of numbers: a raw example names a file, and what the file holds
becomes rows (T, F). Nothing ends them, and nobody writes them."""

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
from dragoman.forms.form import Form, Values
from dragoman.forms.passage import Passage, Piece
from dragoman.sources.shared.files import File
from dragoman.sources.shared.settings import RowsSource

Rows = npt.NDArray[Any]
"""(T, F) of the form's own type."""

MOST_ROWS = 1_000_000
"""Of one source: nearly three hours of sound in frames of 10 ms."""
_VERSION = 1
"""Of what is computed: stores that were made otherwise are made again."""


@dataclass(frozen=True)
class Extent:
    """How much a file holds, as its header tells."""

    seconds: float = 0.0
    """Of sound."""
    height: int = 0
    """Of a picture, in pixels, as its camera was held."""
    width: int = 0

    @property
    def pixels(self) -> int:
        return self.height * self.width


MOST_CELLS = 1_024
"""Of one file."""


@dataclass(frozen=True)
class Cells(ABC):
    """The parts of a file that can be hidden, in a grid, numbered row by row from the top. A hidden
    cell has the mean of what is around it (Zeiler and Fergus, 2014, section 4.2), so it works for
    every kind of model; what is said of the rest shows what the cell had to do with it."""

    rows: int
    columns: int
    read: int
    """The rows of the form that the model reads of the file."""

    @property
    def count(self) -> int:
        """The cells of the whole file."""
        return self.rows * self.columns

    @property
    def count_read(self) -> int:
        """The cells of what is read."""
        return self.count

    @abstractmethod
    def without(self, values: Rows, hidden: Sequence[int]) -> Rows:
        """A copy of the rows of the file with some cells hidden."""

    @abstractmethod
    def row_of(self, cell: int, rows: int) -> int:
        """Which of the ``rows`` that a model makes of what it reads stands for a cell."""

    @abstractmethod
    def spread(self, rows: int) -> tuple[int, int]:
        """How so many rows of a model are shown: from top to bottom, and from left to right."""


class RowsForm(Form):
    """Rows of numbers, that are read and never written."""

    spaced = False
    units = "rows"
    settings: RowsSource
    encoded_together = 8

    @property
    def width(self) -> int:
        return self.settings.row_width

    @abstractmethod
    def rows(self, raw: str) -> Rows:
        """(T, F) what one file holds. Errors: ``DataError`` for one that cannot be used."""

    @abstractmethod
    def check_library(self) -> None:
        """Errors: ``DataError`` where what decodes files is not installed."""

    @abstractmethod
    def extent(self, file: File) -> Extent:
        """How much there is to decode in a file. Errors: ``DataError`` for one that cannot be
        used."""

    @abstractmethod
    def in_turns(self, file: File, most: int | None = None) -> Iterator[Rows | None]:
        """What a file holds, step by step: None after each, and its rows in the end. Errors:
        ``DataError`` as ``rows``, also for more rows than ``most``."""

    @abstractmethod
    def picture(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """(H, W, C) what the model reads, to be looked at."""

    def cells(self, read: int) -> Cells | None:
        """The cells of a file of which so many rows are read; None where none could be hidden."""
        return None

    def beginning(self, raw: str, values: int) -> str:
        """All of it: it is the name of a file."""
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
        told = (
            f"{_VERSION} {self.settings.model_dump_json(exclude=set(self.settings.of_front_end))}"
        )
        return hashlib.sha256(told.encode()).hexdigest()

    def save(self, path: Path) -> None:
        """There is nothing to keep: the recipe says it all."""

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        return [Passage("", (Piece(raw, "", self.rows(raw)),)) for raw in raws]

    def longest_output(self, length: int, extra: int) -> int:
        """The rows that are left of them in the model, and ``extra``."""
        return -(-length // self.settings.shortens) + extra

    # ---- what only tokens have

    @property
    def size(self) -> int:
        """0: there are no tokens."""
        return 0

    @property
    def end(self) -> None:
        return None

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        raise NotImplementedError("rows are no tokens")

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        raise NotImplementedError("rows are not written")

    def shown(self, tokens: Iterable[int]) -> list[str]:
        raise NotImplementedError("rows are no tokens")


def input_of(source: Form) -> int | RowsSource:
    """What a model that reads such a source is made for: so many different tokens, or rows."""
    return source.settings if isinstance(source, RowsForm) else source.size


def check_count(raw: str, rows: int, noun: str, most: int | None = None) -> None:
    """Errors: ``DataError`` for a source of more rows than ``MOST_ROWS``, or than ``most``."""
    most = MOST_ROWS if most is None else most
    if rows > most:
        raise DataError(f"{raw} has {rows:,} {noun}; at most {most:,} are read of one file: cut it")


def low(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float16]:
    """Rows as they are kept: in half of the memory, to three digits."""
    limit = np.finfo(np.float16).max
    return np.clip(rows, -limit, limit).astype(np.float16)
