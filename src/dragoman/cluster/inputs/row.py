"""What a kind of input does: cut files into parts, read the rows of one, and write its output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.cluster.inputs.compression import Compression
from dragoman.cluster.inputs.files import File
from dragoman.cluster.inputs.raw_lines import Stretch


@dataclass(frozen=True)
class Row:
    """One line of an input, or one row of a table."""

    number: int
    """Counted from 1 in its file."""
    texts: tuple[str, ...] | None
    """What the model reads: one text, or a source and its translation. None: there is nothing to
    be done, and ``bad`` or an empty line says why."""
    bad: str = ""
    """What is wrong with it; such a row is reported."""
    given: bytes = b""
    """The line as it stands in the input, where output goes into it."""


@dataclass(frozen=True)
class Fields:
    """Names in rows that have several fields."""

    read: tuple[str, ...]
    write: str


@dataclass(frozen=True)
class PartOfInput:
    """Some lines of one input; of several files that belong together line by line, of each."""

    files: tuple[File, ...]
    compressions: tuple[Compression, ...]
    stretches: tuple[Stretch, ...]
    fields: Fields

    @property
    def place(self) -> str:
        """What messages call it."""
        first, lines = self.stretches[0].first, self.stretches[0].lines
        return f"{self.files[0].place}, lines {first + 1:,} to {first + lines:,}"


class InputKind(ABC):
    """How inputs of one kind are cut, read and written."""

    ending: str
    """Of the names of parts: ``txt``."""

    @abstractmethod
    def check(
        self, file: File, compression: Compression, fields: Fields, language: str | None
    ) -> None:
        """Errors: ``DataError`` where the beginning says that this is no file of this kind, or that
        the fields are wrong. ``language``: of the text; None: it is taken, whatever it is."""

    @abstractmethod
    def cut(self, file: File, compression: Compression, lines: int) -> Iterator[Stretch]:
        """The stretches of a file."""

    @abstractmethod
    def rows(self, part: PartOfInput) -> Iterator[Row]:
        """Every row of a part, the bad ones too."""

    @abstractmethod
    def written(
        self, part: PartOfInput, rows: Sequence[Row], outputs: Sequence[str | None]
    ) -> bytes:
        """The output of a part, not compressed yet. An output of None: there is none."""
