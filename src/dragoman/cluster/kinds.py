"""The kinds of inputs: each cuts files into parts, reads the rows of a part, and writes its output.

Rows are lines of text, of one file or of several in parallel; or JSON Lines, with an object on
each, whose output becomes a field while all others stay as they are, byte for byte; or rows of
Parquet, which gets a column of outputs. The kind of a file is detected.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from itertools import islice, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from dragoman.base.errors import DataError, needing
from dragoman.base.reading import NOT_UTF8, readable, whole_characters
from dragoman.base.wording import plural
from dragoman.cluster.files import File, OpenedFile, compression_of
from dragoman.data.files.bilingual import different_counts
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.data.files.lines import LONGEST, LOOKED_AT

_MAGIC = b"PAR1"
"""The first bytes of each Parquet file."""
END = b"\n"
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
        line = line.removeprefix(BOM_UTF8)
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


class ParquetRows(InputKind):
    """Parquet: a row is a row of the table."""

    ending = "parquet"

    def check(self, file: File, fields: Fields, language: str | None) -> None:
        schema = _open(file).schema_arrow
        for name in fields.read:
            if name not in schema.names:
                raise DataError(
                    f"{file.place} has no column {name!r}; its columns are "
                    f"{', '.join(map(repr, schema.names))}. Set one: --field NAME"
                )
            if not _is_text(schema.field(name).type):
                raise DataError(
                    f"{file.place}: column {name!r} is {schema.field(name).type}, not text"
                )
        if fields.write in schema.names:
            raise DataError(
                f"{file.place} already has a column {fields.write!r}. Set another: --into NAME"
            )

    def cut(self, file: File, lines: int) -> Iterator[Stretch]:
        rows = _open(file).metadata.num_rows
        for first in range(0, rows, lines):
            yield Stretch(first, min(lines, rows - first), 0, 0)

    def rows(self, part: PartOfInput) -> Iterator[Row]:
        table = _table(part)
        columns = [table.column(name).to_pylist() for name in part.fields.read]
        for number, texts in enumerate(zip(*columns, strict=True), part.stretches[0].first + 1):
            if any(text is None for text in texts):
                yield Row(number, None, "has no text")
            else:
                yield Row(number, texts)

    def encode(
        self, part: PartOfInput, rows: Sequence[Row], outputs: Sequence[str | None]
    ) -> bytes:
        pyarrow = _pyarrow(part.files[0].place)
        values = [None if output is None else readable(output) for output in outputs]
        table = _table(part).append_column(
            part.fields.write, pyarrow.array(values, pyarrow.string())
        )
        out = io.BytesIO()
        pyarrow.parquet.write_table(table, out, compression="zstd")
        return out.getvalue()


def _table(part: PartOfInput) -> Any:
    """The rows of a part, read from the row groups that contain them."""
    (file,), (stretch,) = part.files, part.stretches
    opened = _open(file)
    groups: list[int] = []
    before, skipped = 0, 0
    for group in range(opened.metadata.num_row_groups):
        after = before + opened.metadata.row_group(group).num_rows
        if before < stretch.first + stretch.lines and after > stretch.first:
            if not groups:
                skipped = stretch.first - before
            groups.append(group)
        before = after
    return opened.read_row_groups(groups).slice(skipped, stretch.lines)


def _open(file: File) -> Any:
    pyarrow = _pyarrow(file.place)
    try:
        return pyarrow.parquet.ParquetFile(BufferedReader(OpenedFile(file), 1 << 20))
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{file.place} is damaged: {error}") from error


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _pyarrow(name: str) -> Any:
    with needing("parquet", f"{name} is Parquet, which needs pyarrow", DataError):
        import pyarrow
        import pyarrow.parquet
    return pyarrow


KindName = Literal["text", "json", "parquet"]
KINDS: dict[KindName, InputKind] = {
    "text": TextRows(),
    "json": JsonRows(),
    "parquet": ParquetRows(),
}
_JSON_NAMES = (".jsonl", ".ndjson", ".jsonlines")
_COMPRESSED_NAMES = (".gz", ".gzip", ".zst", ".zstd")


def kind_of(file: File) -> tuple[KindName, File]:
    """The name of a file's kind, and the file with its compression: by its first bytes and, for
    JSON, which looks like text, by its name."""
    beginning = file.read(0, 4)
    if beginning == _MAGIC:
        return "parquet", file
    name = file.name.lower()
    for ending in _COMPRESSED_NAMES:
        name = name.removesuffix(ending)
    kind: KindName = "json" if name.endswith(_JSON_NAMES) else "text"
    return kind, replace(file, compression=compression_of(beginning))


MOST_PARTS = 1_000_000


def cut_together(
    files: Sequence[File], kind: InputKind, lines: int
) -> tuple[tuple[Stretch, ...], ...]:
    """Cut files whose lines belong together into parts of at most ``lines``: for each part, its
    stretch of each file. Errors: ``DataError`` if their numbers of lines differ."""
    columns = [list(kind.cut(file, lines)) for file in files]
    counts = [sum(stretch.lines for stretch in column) for column in columns]
    for (file, other), (count, more) in zip(pairwise(files), pairwise(counts), strict=True):
        if count != more:
            raise different_counts(file.place, count, other.place, more)
    return tuple(zip(*columns, strict=True))


def check_count(parts: int, lines: int) -> None:
    """Errors: ``DataError`` for too many parts."""
    if parts > MOST_PARTS:
        raise DataError(
            f"{plural(lines, 'line')} would make {plural(parts, 'part')}; the most is "
            f"{MOST_PARTS:,}. Set more lines for each part: --lines N"
        )
