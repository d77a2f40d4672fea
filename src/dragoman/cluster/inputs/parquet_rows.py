"""Parquet: a column of texts in, one more column out."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import Any

from dragoman.base.errors import DataError, install
from dragoman.base.reading import readable
from dragoman.cluster.inputs.compression import Compression
from dragoman.cluster.inputs.files import File, OpenedFile
from dragoman.cluster.inputs.lines_and_rows import Fields, InputKind, PartOfInput, Row, Stretch

MAGIC = b"PAR1"
"""What such a file begins with."""


class ParquetRows(InputKind):
    """A row of a table."""

    ending = "parquet"

    def check(
        self, file: File, compression: Compression, fields: Fields, language: str | None
    ) -> None:
        schema = _opened(file).schema_arrow
        for name in fields.read:
            if name not in schema.names:
                raise DataError(
                    f"{file.place} has no column {name!r}; it has "
                    f"{', '.join(map(repr, schema.names))}. Name the column: --field NAME"
                )
            if not _is_text(schema.field(name).type):
                raise DataError(
                    f"{file.place}: column {name!r} holds {schema.field(name).type}, no texts"
                )
        if fields.write in schema.names:
            raise DataError(
                f"{file.place} has a column {fields.write!r} already. Name another: --into NAME"
            )

    def cut(self, file: File, compression: Compression, lines: int) -> Iterator[Stretch]:
        rows = _opened(file).metadata.num_rows
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

    def written(
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
    """The rows of a part, of the row groups that hold them."""
    (file,), (stretch,) = part.files, part.stretches
    opened = _opened(file)
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


def _opened(file: File) -> Any:
    pyarrow = _pyarrow(file.place)
    try:
        return pyarrow.parquet.ParquetFile(BufferedReader(OpenedFile(file), 1 << 20))
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{file.place} is damaged: {error}") from error


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _pyarrow(name: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            f"{name} is Parquet, and pyarrow is not installed: {install('parquet')}"
        ) from None
    return pyarrow
