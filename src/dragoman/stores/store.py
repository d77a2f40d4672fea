"""What a store can do, whatever is behind it: a folder, a bucket, a server of files.

A name is a path below the store's address, with "/" between its parts. Content is written whole or
not at all, and ``create`` is refused where there is something already: who comes second learns it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dragoman.base.errors import DataError, DragomanError


class StoreError(DragomanError):
    """A store cannot be read or written: no credentials, no such bucket, no room, no answer."""


class InputChanged(DataError):
    """An input is not what it was when the plan was made."""


@dataclass(frozen=True)
class Stat:
    """What a store says of one object."""

    size: int
    tag: str
    """Changes whenever the content does: an ETag, or the time of the last change."""


class Store(ABC):
    """One folder, bucket or server."""

    address: str
    """What messages call it: ``/data/in`` or ``s3://bucket``."""

    @abstractmethod
    def stat(self, name: str) -> Stat | None:
        """Size and tag; None if there is nothing of that name."""

    @abstractmethod
    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        """``length`` bytes from ``start`` on. ``tag``: the one that the object must still have.

        Errors: ``InputChanged`` where it has another, or there is none any more.
        """

    @abstractmethod
    def names(self, below: str) -> Iterator[tuple[str, Stat]]:
        """All objects whose names begin with ``below``, in the order of their names."""

    @abstractmethod
    def create(self, name: str, data: bytes) -> bool:
        """Write an object if there is none; False if there is one, which stays as it is."""

    def create_of(self, name: str, blocks: Iterable[bytes]) -> bool:
        """``create`` of what comes block by block: a folder holds no more than one in memory."""
        return self.create(name, b"".join(blocks))

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove an object, if there is one."""

    def place(self, name: str) -> str:
        """What messages call one object."""
        return f"{self.address.rstrip('/')}/{name}" if name else self.address
