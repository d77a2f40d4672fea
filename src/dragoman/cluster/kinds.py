"""The table of the kinds of inputs, the detection of a file's kind, and Parquet, which reads a
column of texts and adds a column of outputs."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BufferedReader
from itertools import pairwise
from typing import Any, Literal

from dragoman.base.errors import DataError, needing
from dragoman.base.reading import readable
from dragoman.base.wording import plural
from dragoman.cluster.files import File, OpenedFile, compression_of
from dragoman.cluster.rows import Fields, InputKind, JsonRows, PartOfInput, Row, Stretch, TextRows
from dragoman.data.files.bilingual import different_counts

_MAGIC = b"PAR1"
"""The first bytes of each Parquet file."""


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
