"""gzip and zstd: read by what a file begins with, written as the input was."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from dragoman.base.errors import DataError, install

Compression = Literal["", "gz", "zst"]
"""As the name of a file ends; nothing for plain bytes."""

_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
_LEVEL = 6
_AT_ONCE = 1 << 20
"""Bytes that are given to a decompressor at once: a file of zeros grows a thousandfold."""


def compression_of(beginning: bytes) -> Compression:
    """By the first bytes of a file."""
    return next((name for magic, name in _MAGIC.items() if beginning.startswith(magic)), "")


def plain_blocks(blocks: Iterable[bytes], compression: Compression, name: str) -> Iterator[bytes]:
    """What was compressed. ``name``: of the file, for messages.

    Errors: ``DataError`` for a file that is damaged, or that ends too early.
    """
    if not compression:
        yield from blocks
        return
    zstd = _zstandard(name) if compression == "zst" else None
    failures: tuple[type[Exception], ...] = (zlib.error,)
    if zstd is not None:
        failures = (zstd.ZstdError,)

    def decompressor() -> Any:
        if zstd is not None:
            return zstd.ZstdDecompressor().decompressobj()
        return zlib.decompressobj(wbits=31)

    # A file may be several that were joined; each needs a decompressor of its own.
    current: Any = None
    for block in blocks:
        for start in range(0, len(block), _AT_ONCE):
            rest = block[start : start + _AT_ONCE]
            while rest:
                if current is None:
                    rest = rest.lstrip(b"\0") if compression == "gz" else rest  # padding
                    if not rest:
                        break
                    current = decompressor()
                try:
                    plain = current.decompress(rest)
                except failures as error:
                    raise DataError(f"{name} is damaged: {error}") from error
                rest = current.unused_data if current.eof else b""
                if current.eof:
                    current = None
                if plain:
                    yield plain
    if current is not None:
        raise DataError(f"{name} is not whole: its {compression} data ends too early")


def compressed(data: bytes, compression: Compression) -> bytes:
    """The same bytes for the same data, whenever and wherever they are made."""
    if compression == "gz":
        return gzip.compress(data, _LEVEL, mtime=0)
    if compression == "zst":
        made: bytes = _zstandard("the output").ZstdCompressor(level=3).compress(data)
        return made
    return data


def _zstandard(name: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise DataError(
            f"{name} is compressed by zstd, and zstandard is not installed: {install('cluster')}"
        ) from None
    return zstandard
