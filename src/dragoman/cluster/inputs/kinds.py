"""The kinds by their names, and which one a file is."""

from __future__ import annotations

from typing import Literal

from dragoman.cluster.inputs.compression import Compression, compression_of
from dragoman.cluster.inputs.files import File, read_bytes
from dragoman.cluster.inputs.line_rows import JsonRows, TextRows
from dragoman.cluster.inputs.lines_and_rows import InputKind
from dragoman.cluster.inputs.parquet_rows import MAGIC, ParquetRows

KindName = Literal["text", "json", "parquet"]
KINDS: dict[KindName, InputKind] = {
    "text": TextRows(),
    "json": JsonRows(),
    "parquet": ParquetRows(),
}
_JSON_NAMES = (".jsonl", ".ndjson", ".jsonlines")
_COMPRESSED_NAMES = (".gz", ".gzip", ".zst", ".zstd")


def kind_of(file: File) -> tuple[KindName, Compression]:
    """Name of its kind, and how it is compressed: by what it begins with, and for JSON, which
    looks like text, by its name."""
    beginning = read_bytes(file.open(), file, 0, 4)
    if beginning == MAGIC:
        return "parquet", ""
    name = file.name.lower()
    for ending in _COMPRESSED_NAMES:
        name = name.removesuffix(ending)
    return "json" if name.endswith(_JSON_NAMES) else "text", compression_of(beginning)
