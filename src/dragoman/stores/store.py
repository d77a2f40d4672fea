"""The interface of all stores: folders, buckets, servers of files.

A name is a path below the store's address, with "/" between its parts. Content is written whole or
not at all, and ``create`` is refused where there is something already: who comes second learns it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dragoman.base.errors import DataError, DragomanError

BLOCK = 8 << 20
"""Bytes of one request to a store."""
Content = bytes | Iterable[bytes]
"""The content of an object; in blocks if it may be large."""


class StoreError(DragomanError):
    """A store cannot be read or written: no credentials, no such bucket, no room, no answer."""


class InputChanged(DataError):
    """An input is not what it was when the plan of the parts was made."""


CHANGED = "has changed since the parts were planned. Restore it, or use another folder: --to"
"""The end of a message about an input that has changed."""


@dataclass(frozen=True)
class Stat:
    """The size and version of one object."""

    size: int
    tag: str
    """Changes whenever the content does: an ETag, or the time of the last change."""


class Store(ABC):
    """One folder, bucket or server of objects."""

    address: str
    """The name of the store in messages: ``/data/in`` or ``s3://bucket``."""

    @abstractmethod
    def stat(self, name: str) -> Stat | None:
        """Size and tag; None if there is nothing of that name."""

    @abstractmethod
    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        """``length`` bytes from ``start`` on. ``tag``: the one that the object must still have.

        Errors: ``InputChanged`` where it has another, or there is none any more.
        """

    def content(self, name: str) -> bytes | None:
        """All of an object; None if there is none."""
        stat = self.stat(name)
        return None if stat is None else self.read(name, 0, stat.size)

    def blocks(self, name: str, stat: Stat) -> Iterator[bytes]:
        """All of an object that must be as it was, block by block. Errors: as ``read``."""
        for start in range(0, stat.size, BLOCK):
            yield self.read(name, start, min(BLOCK, stat.size - start), stat.tag)

    @abstractmethod
    def names(self, below: str) -> Iterator[tuple[str, Stat]]:
        """All objects whose names begin with ``below``, in the order of their names."""

    @abstractmethod
    def create(self, name: str, content: Content) -> bool:
        """Write an object if there is none; False if there is one, which stays as it is. A folder
        holds no more than a block of it in memory."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove an object, if there is one."""

    def sweep(self) -> None:  # noqa: B027 -- a bucket holds nothing that is half-written
        """Remove what killed processes left half-written, long ago."""

    def place(self, name: str) -> str:
        """The name of one object in messages."""
        return f"{self.address.rstrip('/')}/{name}" if name else self.address
