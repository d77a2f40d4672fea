"""The input files: an address names a file, all files of a folder, or a pattern with ``*``. gzip
and zstd are detected by the first bytes, and outputs are compressed as their inputs."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from io import RawIOBase
from typing import Any, Literal

from dragoman import stores
from dragoman.base.errors import DataError, needing

_PATTERN = re.compile(r"[*?\[]")
_HIDDEN = (".", "_")
"""Prefixes of names that are not data: temporary files, and notes of programs."""

Compression = Literal["", "gz", "zst"]
"""The ending of the name of such a file; empty for plain bytes."""
_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
_LEVEL = 6
_AT_ONCE = 1 << 20
"""The bytes that a decompressor gets at once: a file of zeros grows a thousandfold."""


@dataclass(frozen=True)
class File:
    """One input, in its state when the plan was made."""

    store: str
    """The address of the store that contains it."""
    name: str
    stat: stores.Stat
    compression: Compression = ""
    """The compression, which is known once the plan is made."""

    @property
    def place(self) -> str:
        """The name of the file in messages."""
        return f"{self.store.rstrip('/')}/{self.name}"

    def open(self) -> stores.Store:
        """Open the store of the file."""
        return stores.open_store(self.store)

    def check_unchanged(self) -> None:
        """Errors: ``InputChanged`` if the file has changed."""
        if self.open().stat(self.name) != self.stat:
            raise stores.InputChanged(f"{self.place} {stores.CHANGED}")

    def read(self, start: int, length: int, store: stores.Store | None = None) -> bytes:
        """Read bytes of the file, fewer only at its end. ``store``: its store, if it is open
        already.

        Errors: ``InputChanged``, also if the file has become shorter; ``StoreError``.
        """
        length = max(0, min(length, self.stat.size - start))
        data = (store or self.open()).read(self.name, start, length, self.stat.tag)
        if len(data) != length:
            raise stores.InputChanged(f"{self.place} {stores.CHANGED}")
        return data

    def blocks(self, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The stored bytes of the file, or of a stretch of it, block by block."""
        store = self.open()
        end = self.stat.size if length is None else start + length
        while start < end and (block := self.read(start, min(stores.BLOCK, end - start), store)):
            start += len(block)
            yield block

    def plain(self, length: int | None = None) -> Iterator[bytes]:
        """The decompressed bytes of the file, or of its first ``length`` stored bytes."""
        return plain_blocks(self.blocks(0, length), self.compression, self.place)


def files_of(addresses: Sequence[str]) -> list[File]:
    """All files of the addresses: in their order, and by name within each address.

    Errors: ``DataError`` for an address without files, ``StoreError`` for one that cannot be read.
    """
    files: list[File] = []
    for address in addresses:
        some = list(_files(address))
        if not some:
            raise DataError(f"{address} does not name a file")
        files += some
    return files


def _files(address: str) -> Iterator[File]:
    store, name = stores.split_address(address)
    if not stores.is_remote(address):
        if os.path.isfile(address):
            store, name = os.path.split(store)
        elif _PATTERN.search(store) and not os.path.isdir(address):
            # The folder above the first part with a pattern; the rest is matched.
            whole = store
            while _PATTERN.search(store):
                store = os.path.dirname(store)
            name = os.path.relpath(whole, store)
        elif not os.path.isdir(address):
            raise DataError(f"there is no file {address}")
    files = stores.open_store(store)
    listed = not store.startswith("http")
    pattern = _PATTERN.search(name) if listed else None
    if name and not pattern and (stat := files.stat(name)) is not None:
        yield File(store, name, stat)
        return
    if not listed:
        return
    below = name[: pattern.start()] if pattern else f"{name.rstrip('/')}/" if name else ""
    above = below.rfind("/") + 1
    for entry, stat in files.names(below):
        is_hidden = any(part.startswith(_HIDDEN) for part in entry[above:].split("/"))
        # "*" stays within a folder, as it does in a shell.
        matches = not pattern or (fnmatchcase(entry, name) and entry.count("/") == name.count("/"))
        if matches and not is_hidden:
            yield File(store, entry, stat)


class OpenedFile(RawIOBase):
    """A seekable file object; each read requests only its bytes."""

    def __init__(self, file: File) -> None:
        super().__init__()
        self._file, self._store = file, file.open()
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        beginnings = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.stat.size}
        self._at = max(0, beginnings[whence] + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(self._at, len(buffer), self._store)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def compression_of(beginning: bytes) -> Compression:
    """The compression of a file, by its first bytes."""
    return next((name for magic, name in _MAGIC.items() if beginning.startswith(magic)), "")


def plain_blocks(blocks: Iterable[bytes], compression: Compression, name: str) -> Iterator[bytes]:
    """Decompress the blocks of a file. ``name``: the file's name, for messages.

    Errors: ``DataError`` for a file that is damaged, or that ends too early.
    """
    if not compression:
        yield from blocks
        return
    make: Callable[[], Any]
    damage: type[Exception]
    if compression == "gz":
        make, damage = partial(zlib.decompressobj, wbits=31), zlib.error
    else:
        zstd = _zstandard(name)
        make, damage = (lambda: zstd.ZstdDecompressor().decompressobj()), zstd.ZstdError
    # A file may be a concatenation of several; each needs a decompressor of its own.
    current: Any = None
    for block in blocks:
        for start in range(0, len(block), _AT_ONCE):
            rest = block[start : start + _AT_ONCE]
            while rest:
                if current is None:
                    rest = rest.lstrip(b"\0") if compression == "gz" else rest  # padding
                    if not rest:
                        break
                    current = make()
                try:
                    plain = current.decompress(rest)
                except damage as error:
                    raise DataError(f"{name} is damaged: {error}") from error
                rest = current.unused_data if current.eof else b""
                if current.eof:
                    current = None
                if plain:
                    yield plain
    if current is not None:
        raise DataError(f"{name} is cut off: its {compression} data ends too early")


def compress(data: bytes, compression: Compression) -> bytes:
    """Compress data, with the same result on every machine and at any time."""
    if compression == "gz":
        return gzip.compress(data, _LEVEL, mtime=0)
    if compression == "zst":
        made: bytes = _zstandard("the output").ZstdCompressor(level=3).compress(data)
        return made
    return data


def _zstandard(name: str) -> Any:
    why = f"{name} is compressed by zstd, but zstandard is not installed"
    with needing("cluster", why, DataError):
        import zstandard
    return zstandard
