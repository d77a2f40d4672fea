"""Bytes -> lines, and where every so many of them begin; and what a kind of input does: cut files
into parts, read the rows of one, and write its output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dragoman.cluster.inputs.compression import Compression
from dragoman.cluster.inputs.files import File
from dragoman.data.files.lines import LONGEST

END = b"\n"


class RawLine(NamedTuple):
    """A line without its end."""

    data: bytes | None
    """None of one that is longer than ``LONGEST``."""
    size: int


class Stretch(NamedTuple):
    """Some lines of a file."""

    first: int
    """Counted from 0."""
    lines: int
    start: int
    """Bytes before it."""
    length: int
    """Bytes of it, line ends counted."""


def raw_lines(blocks: Iterable[bytes]) -> Iterator[RawLine]:
    """The lines of some bytes, in flat memory whatever a line is."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        begun, *others = block.split(END)
        size += len(begun)
        if size <= LONGEST:
            held.append(begun)
        else:
            held.clear()
        if not others:
            continue
        yield RawLine(b"".join(held) if size <= LONGEST else None, size)
        last = others.pop()
        for one in others:
            yield RawLine(one if len(one) <= LONGEST else None, len(one))
        held, size = [last], len(last)
    if size:
        yield RawLine(b"".join(held) if size <= LONGEST else None, size)


def stretches(blocks: Iterable[bytes], lines: int) -> Iterator[Stretch]:
    """Every ``lines`` lines, the last stretch of what is left."""
    first, count = 0, 0  # of the stretch that is not whole yet
    start, at = 0, 0  # where it begins, and the bytes before the block
    ended = True
    for block in blocks:
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == END[0])
        taken = 0
        while count + len(ends) - taken >= lines:
            taken += lines - count
            end = at + int(ends[taken - 1]) + 1
            yield Stretch(first, lines, start, end - start)
            first, count, start = first + lines, 0, end
        count += len(ends) - taken
        at += len(block)
        ended = block.endswith(END)
    count += not ended
    if count:
        yield Stretch(first, count, start, at - start)


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
