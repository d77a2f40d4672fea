"""Lines and their places in bytes, and the kinds of inputs: each cuts files into parts, reads the
rows of a part, and writes its output.

Rows are lines of text, of one file or of several in parallel; or JSON Lines, with an object on
each, whose output becomes a field while all others stay as they are, byte for byte.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dragoman.base.errors import DataError
from dragoman.base.reading import NOT_UTF8, readable, whole_characters
from dragoman.cluster.files import File
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.data.files.lines import LONGEST, LOOKED_AT

END = b"\n"
_UTF8_MARK = b"\xef\xbb\xbf"
TOO_LONG = f"bytes, but a line may have at most {LONGEST:,}"
_NOT_UTF8 = "has bytes that are not UTF-8; each is read as U+FFFD"
_SHOWN = 1 << 20
"""The most bytes of a bad line that are kept in its output."""


class RawLine(NamedTuple):
    """A line of a file without its line end."""

    data: bytes | None
    """The bytes of the line; None if it is longer than ``LONGEST``."""
    size: int


class Stretch(NamedTuple):
    """Some consecutive lines of a file."""

    first: int
    """The number of the first line, from 0."""
    lines: int
    start: int
    """The number of bytes before it."""
    length: int
    """The number of its bytes, line ends included."""


def raw_lines(blocks: Iterable[bytes]) -> Iterator[RawLine]:
    """Split bytes into lines, in bounded memory whatever the length of a line."""
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
        for line in others:
            yield RawLine(line if len(line) <= LONGEST else None, len(line))
        held, size = [last], len(last)
    if size:
        yield RawLine(b"".join(held) if size <= LONGEST else None, size)


def stretches(blocks: Iterable[bytes], lines: int) -> Iterator[Stretch]:
    """Cut bytes into stretches of ``lines`` lines; the last one has what is left."""
    first, count = 0, 0  # of the stretch that is not complete
    start, at = 0, 0  # its beginning, and the number of bytes before the block
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
    """The number of the line in its file, from 1."""
    texts: tuple[str, ...] | None
    """The input of the model: one text, or a source and its translation. None: there is nothing to
    do, and ``bad`` or an empty line is the reason."""
    bad: str = ""
    """The problem of a bad row, which is reported."""
    given: bytes = b""
    """The line as it is in the input, if the output is inserted into it."""


@dataclass(frozen=True)
class Fields:
    """The names of fields in rows that have several."""

    read: tuple[str, ...]
    write: str


@dataclass(frozen=True)
class PartOfInput:
    """Consecutive lines of one input, or of several files that belong together line by line."""

    files: tuple[File, ...]
    stretches: tuple[Stretch, ...]
    fields: Fields

    @property
    def place(self) -> str:
        """The name of the part in messages."""
        return place_of(self.files[0], self.stretches[0])


def place_of(file: File, stretch: Stretch) -> str:
    """The name of some lines of a file in messages."""
    return f"{file.place}, lines {stretch.first + 1:,} to {stretch.first + stretch.lines:,}"


class InputKind(ABC):
    """A kind of input: how its files are cut, read and written."""

    ending: str
    """The ending of the names of parts, such as ``txt``."""

    @abstractmethod
    def check(self, file: File, fields: Fields, language: str | None) -> None:
        """Errors: ``DataError`` if the beginning of a file shows another kind, or the fields are
        wrong. ``language``: the language of the text; None: any text is accepted."""

    def cut(self, file: File, lines: int) -> Iterator[Stretch]:
        """Yield the stretches of a file in order."""
        return stretches(file.plain(), lines)

    @abstractmethod
    def rows(self, part: PartOfInput) -> Iterator[Row]:
        """Every row of a part, including bad ones."""

    @abstractmethod
    def encode(
        self, part: PartOfInput, rows: Sequence[Row], outputs: Sequence[str | None]
    ) -> bytes:
        """Encode the output of a part, without compression. None as an output: the row has none."""


class TextRows(InputKind):
    """Text: each line is a text."""

    ending = "txt"

    def check(self, file: File, fields: Fields, language: str | None) -> None:
        if language is None:
            return
        start = next(file.plain(LOOKED_AT), b"")
        try:
            check_is_lines(start[:LOOKED_AT], file.place, language)
        except NotLines as error:
            raise NotLines(f"{error}; or read every line as it is: --plain") from None

    def rows(self, part: PartOfInput) -> Iterator[Row]:
        sides = map(lines_of, part.files, part.stretches)
        for number, raw in enumerate(zip(*sides, strict=True), part.stretches[0].first + 1):
            far = next((line for line in raw if line.data is None), None)
            if far is not None:
                yield Row(number, None, f"has {far.size:,} {TOO_LONG}")
                continue
            texts = tuple(decode(line.data or b"", first=number == 1) for line in raw)
            bad = any(not text.isascii() and NOT_UTF8.search(text) for text in texts)
            yield Row(number, texts, _NOT_UTF8 if bad else "")

    def encode(
        self, part: PartOfInput, rows: Sequence[Row], outputs: Sequence[str | None]
    ) -> bytes:
        return "".join(f"{readable(output or '')}\n" for output in outputs).encode()


def lines_of(file: File, stretch: Stretch) -> Iterator[RawLine]:
    """The lines of a stretch. A compressed file is read from its beginning."""
    if not file.compression:
        return raw_lines(file.blocks(stretch.start, stretch.length))
    return islice(raw_lines(file.plain()), stretch.first, stretch.first + stretch.lines)


def decode(line: bytes, *, first: bool) -> str:
    """Decode a line as ``data.lines`` does; ``first``: True for the first line of its file."""
    if first:
        line = line.removeprefix(_UTF8_MARK)
    return line.decode("utf-8", "surrogateescape").removesuffix("\r")


class JsonRows(InputKind):
    """JSON Lines: each line is an object with a text in a field."""

    ending = "jsonl"

    def check(self, file: File, fields: Fields, language: str | None) -> None:
        for line in islice(raw_lines(file.plain()), 1):
            row = _row(1, line, fields)
            if row.bad:
                raise DataError(f"{file.place}, line 1 {row.bad}")

    def rows(self, part: PartOfInput) -> Iterator[Row]:
        (file,), (stretch,) = part.files, part.stretches
        for number, line in enumerate(lines_of(file, stretch), stretch.first + 1):
            yield _row(number, line, part.fields)

    def encode(
        self, part: PartOfInput, rows: Sequence[Row], outputs: Sequence[str | None]
    ) -> bytes:
        name = json.dumps(part.fields.write, ensure_ascii=False)
        return b"".join(
            _with(row, name, output) + b"\n" for row, output in zip(rows, outputs, strict=True)
        )


def _row(number: int, line: RawLine, fields: Fields) -> Row:
    if line.data is None:
        return Row(number, None, f"has {line.size:,} {TOO_LONG}")
    text = decode(line.data, first=number == 1)
    given = readable(text).encode()
    if not text.strip():
        return Row(number, None, given=given)
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Row(number, None, f"is not JSON: {error}", given)
    if not isinstance(values, dict):
        return Row(number, None, "is not a JSON object", given)
    texts = []
    for name in fields.read:
        if not isinstance(values.get(name), str):
            what = "is not a text" if name in values else "is missing"
            reason = f"its field {name!r} {what}; it has {', '.join(map(repr, values)) or 'none'}"
            return Row(number, None, f"{reason}. Set the field: --field NAME", given)
        texts.append(whole_characters(values[name]))
    if fields.write in values:
        reason = f"already has a field {fields.write!r}. Set another: --into NAME"
        return Row(number, None, reason, given)
    return Row(number, tuple(texts), given=given)


def _with(row: Row, name: str, output: str | None) -> bytes:
    """The line with the output as its last field; for a bad line, the problem and the line."""
    if output is None:
        if not row.bad:
            return row.given
        bad: dict[str, object] = {"error": row.bad}
        if row.given:
            bad["line"] = row.given[:_SHOWN].decode("utf-8", "replace")
        return json.dumps(bad, ensure_ascii=False).encode()
    whole = row.given.strip()[:-1].rstrip()  # without the last brace
    value = json.dumps(readable(output), ensure_ascii=False)
    return whole + f"{'' if whole.endswith(b'{') else ', '}{name}: {value}}}".encode()
