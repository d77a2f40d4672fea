"""JSON Lines: an object on each line. The output becomes a field of it; all others stay as they
are, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from dragoman.cluster.inputs.compression import Compression, plain_blocks
from dragoman.cluster.inputs.files import File, blocks
from dragoman.cluster.inputs.raw_lines import Stretch, raw_lines, stretches
from dragoman.cluster.inputs.row import Fields, InputKind, PartOfInput, Row
from dragoman.cluster.inputs.text_rows import TOO_LONG, decoded, lines_of
from dragoman.errors import DataError
from dragoman.reading import readable, whole_characters

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
