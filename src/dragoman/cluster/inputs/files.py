"""The files that addresses name: a file, all of a folder, or a pattern with ``*``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import RawIOBase
from typing import Any

from dragoman.base.errors import DataError
from dragoman.stores.opened import is_remote, opened, split_address
from dragoman.stores.store import InputChanged, Stat, Store

BLOCK = 8 << 20
"""Bytes of one request to a store."""
_PATTERN = re.compile(r"[*?\[]")
_HIDDEN = (".", "_")
"""Names that begin so are none of the data: of temporary files, and of what programs note."""


@dataclass(frozen=True)
class File:
    """One input, as it was when the plan was made."""

    store: str
    """The address of its store."""
    name: str
    stat: Stat

    @property
    def place(self) -> str:
        """What messages call it."""
        return f"{self.store.rstrip('/')}/{self.name}"

    def open(self) -> Store:
        """Its store."""
        return opened(self.store)


def files_of(addresses: Sequence[str]) -> list[File]:
    """All files of the addresses: in their order, those of one in the order of their names.

    Errors: ``DataError`` for an address that names none, ``StoreError`` for one that cannot be
    read.
    """
    found: list[File] = []
    for address in addresses:
        some = list(_files(address))
        if not some:
            raise DataError(f"{address} names no file")
        found += some
    return found


def _files(address: str) -> Iterator[File]:
    store, name = split_address(address)
    if not is_remote(address):
        if os.path.isfile(address):
            store, name = os.path.split(store)
        elif os.path.isdir(address):
            store, name = store, ""
        elif _PATTERN.search(store):
            # The folder above the first part with a pattern; what is behind is matched.
            whole = store
            while _PATTERN.search(store):
                store = os.path.dirname(store)
            name = os.path.relpath(whole, store)
        else:
            raise DataError(f"there is no file {address}")
    files = opened(store)
    pattern = _PATTERN.search(name) if not store.startswith("http") else None
    if name and not pattern and (stat := files.stat(name)) is not None:
        yield File(store, name, stat)
        return
    if pattern is None:
        if store.startswith("http"):
            return
        below, wanted = (f"{name.rstrip('/')}/" if name else ""), None
    else:
        below, wanted = name[: pattern.start()], name
    above = below.rfind("/") + 1
    for one, stat in files.names(below):
        is_hidden = any(part.startswith(_HIDDEN) for part in one[above:].split("/"))
        # "*" stays within a folder, as it does in a shell.
        matches = wanted is None or (
            fnmatchcase(one, wanted) and one.count("/") == wanted.count("/")
        )
        if matches and not is_hidden:
            yield File(store, one, stat)


class OpenedFile(RawIOBase):
    """The bytes of a file, for whoever seeks in it; each request asks for what is read."""

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

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = read_bytes(self._store, self._file, self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def read_bytes(store: Store, file: File, start: int, length: int) -> bytes:
    """Bytes of a file, fewer only at its end. Errors: ``InputChanged``, also where a file has
    become shorter; ``StoreError``."""
    length = max(0, min(length, file.stat.size - start))
    data = store.read(file.name, start, length, file.stat.tag)
    if len(data) != length:
        raise InputChanged(f"{file.place} has become shorter since the plan was made")
    return data


def blocks(file: File, start: int = 0, length: int | None = None) -> Iterator[bytes]:
    """The bytes of a file, or of a stretch of it, block by block."""
    store = file.open()
    end = file.stat.size if length is None else start + length
    while start < end:
        block = read_bytes(store, file, start, min(BLOCK, end - start))
        if not block:
            return
        start += len(block)
        yield block
