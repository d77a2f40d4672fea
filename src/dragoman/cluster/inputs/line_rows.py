"""Rows that are lines: of text, of one file or of several side by side; or JSON Lines, an object on
each, whose output becomes a field of it while all others stay as they are, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from dragoman.base.errors import DataError
from dragoman.base.reading import NOT_UTF8, readable, whole_characters
from dragoman.cluster.inputs.compression import Compression, plain_blocks
from dragoman.cluster.inputs.files import File, blocks
from dragoman.cluster.inputs.lines_and_rows import (
    Fields,
    InputKind,
    PartOfInput,
    RawLine,
    Row,
    Stretch,
    raw_lines,
    stretches,
)
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.data.files.lines import LONGEST, LOOKED_AT

_UTF8_MARK = b"\xef\xbb\xbf"
TOO_LONG = f"bytes, and {LONGEST:,} are read as one line"
_NOT_UTF8 = "has bytes that are not UTF-8; each is read as U+FFFD"


class TextRows(InputKind):
    """A line is a text."""

    ending = "txt"

    def check(
        self, file: File, compression: Compression, fields: Fields, language: str | None
    ) -> None:
        if language is None:
            return
        start = next(plain_blocks(blocks(file, 0, LOOKED_AT), compression, file.place), b"")
        try:
            check_is_lines(start[:LOOKED_AT], file.place, language)
        except NotLines as error:
            raise NotLines(f"{error}; or read every line as it is: --plain") from None

    def cut(self, file: File, compression: Compression, lines: int) -> Iterator[Stretch]:
        return stretches(plain_blocks(blocks(file), compression, file.place), lines)

    def rows(self, part: PartOfInput) -> Iterator[Row]:
        sides = [
            lines_of(file, compression, stretch)
            for file, compression, stretch in zip(
                part.files, part.compressions, part.stretches, strict=True
            )
        ]
        for number, raw in enumerate(zip(*sides, strict=True), part.stretches[0].first + 1):
            far = next((one for one in raw if one.data is None), None)
            if far is not None:
                yield Row(number, None, f"has {far.size:,} {TOO_LONG}")
                continue
            texts = tuple(decoded(one.data or b"", first=number == 1) for one in raw)
            bad = any(not text.isascii() and NOT_UTF8.search(text) for text in texts)
            yield Row(number, texts, _NOT_UTF8 if bad else "")

    def written(
        self, part: PartOfInput, rows: Sequence[Row], outputs: Sequence[str | None]
    ) -> bytes:
        return "".join(f"{readable(output or '')}\n" for output in outputs).encode()


def lines_of(file: File, compression: Compression, stretch: Stretch) -> Iterator[RawLine]:
    """The lines of a stretch. What is compressed is read from its beginning."""
    if not compression:
        return raw_lines(blocks(file, stretch.start, stretch.length))
    every = raw_lines(plain_blocks(blocks(file), compression, file.place))
    return islice(every, stretch.first, stretch.first + stretch.lines)


def decoded(line: bytes, *, first: bool) -> str:
    """As ``data.lines`` reads one; ``first``: of its file."""
    if first:
        line = line.removeprefix(_UTF8_MARK)
    return line.decode("utf-8", "surrogateescape").removesuffix("\r")


_SHOWN = 1 << 20
"""Bytes of a bad line that are kept in its output."""


class JsonRows(InputKind):
    """A line is an object, whose field is a text."""

    ending = "jsonl"

    def check(
        self, file: File, compression: Compression, fields: Fields, language: str | None
    ) -> None:
        plain = plain_blocks(blocks(file), compression, file.place)
        for number, line in enumerate(islice(raw_lines(plain), 1), 1):
            row = _row(number, line.data, line.size, fields)
            if row.bad:
                raise DataError(f"{file.place}, line {number} {row.bad}")

    def cut(self, file: File, compression: Compression, lines: int) -> Iterator[Stretch]:
        return stretches(plain_blocks(blocks(file), compression, file.place), lines)

    def rows(self, part: PartOfInput) -> Iterator[Row]:
        (file,), (compression,), (stretch,) = part.files, part.compressions, part.stretches
        lines = lines_of(file, compression, stretch)
        for number, line in enumerate(lines, stretch.first + 1):
            yield _row(number, line.data, line.size, part.fields)

    def written(
        self, part: PartOfInput, rows: Sequence[Row], outputs: Sequence[str | None]
    ) -> bytes:
        name = json.dumps(part.fields.write, ensure_ascii=False)
        return b"".join(
            _with(row, name, output) + b"\n" for row, output in zip(rows, outputs, strict=True)
        )


def _row(number: int, line: bytes | None, size: int, fields: Fields) -> Row:
    if line is None:
        return Row(number, None, f"has {size:,} {TOO_LONG}")
    text = decoded(line, first=number == 1)
    given = readable(text).encode()
    if not text.strip():
        return Row(number, None, given=given)
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Row(number, None, f"is no JSON: {error}", given)
    if not isinstance(found, dict):
        return Row(number, None, "is no JSON object", given)
    texts = []
    for name in fields.read:
        if not isinstance(found.get(name), str):
            what = "is no text" if name in found else "is missing"
            told = f"its field {name!r} {what}; it has {', '.join(map(repr, found)) or 'none'}"
            return Row(number, None, f"{told}. Name the field: --field NAME", given)
        texts.append(whole_characters(found[name]))
    if fields.write in found:
        told = f"has a field {fields.write!r} already. Name another: --into NAME"
        return Row(number, None, told, given)
    return Row(number, tuple(texts), given=given)


def _with(row: Row, name: str, output: str | None) -> bytes:
    """The line with the output as its last field; of a bad line, what is wrong and the line."""
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
