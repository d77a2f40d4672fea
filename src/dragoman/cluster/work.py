"""Work in parts, as driver and workers see it, and the agreement on how all workers compute."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from dragoman.stores import Store, StoreError, open_store

NOTES = "_dragoman"
"""The folder of notes next to the parts: programs that read folders of data skip such names."""
_WAY = f"{NOTES}/way.json"
_TRIAL = f"{NOTES}/trial-"


@dataclass(frozen=True)
class Way:
    """The way in which a worker computes. Results of two ways may differ in rare ties."""

    precision: str = "fp32"
    level: str = ""
    """The instruction set of the kernels; empty for plain torch."""
    dragoman: str = ""
    torch: str = ""

    @property
    def words(self) -> str:
        """A description of the way for messages."""
        by = f"native kernels for {self.level}" if self.level else "plain torch"
        return f"{self.precision} by {by}, dragoman {self.dragoman}, torch {self.torch}"


def agree_on_way(store: Store, own: Way) -> Way:
    """The way in which all workers compute: the stored one, or ``own``, which is stored now."""
    store.create(_WAY, json.dumps(asdict(own)).encode())
    way = way_that_stands(store)
    assert way is not None, "it was created if it was not there"
    return way


def way_that_stands(store: Store) -> Way | None:
    """The stored way, or None before the first worker is ready."""
    content = store.content(_WAY)
    if content is None:
        return None
    try:
        return Way(**json.loads(content))
    except (ValueError, TypeError) as error:
        raise StoreError(f"{store.place(_WAY)} is damaged: {error!r}") from error


def check_conditional(store: Store) -> None:
    """Errors: ``StoreError`` if the store accepts a second write of one name, so that a part could
    be written twice."""
    name = f"{_TRIAL}{os.urandom(8).hex()}"
    store.create(name, b"first")
    refused = not store.create(name, b"second")
    stands = store.content(name)
    store.remove(name)
    if not refused or stands != b"first":
        raise StoreError(
            f"{store.address} does not support conditional writes (If-None-Match), so two "
            "workers could write the same part. Use S3, GCS, Azure or a current MinIO"
        )


@dataclass(frozen=True)
class Work(ABC):
    """Parts that are numbered, each committed once under a name of its own in a store. All workers
    get the same object, which is picklable."""

    to: str
    """The address of the store of parts."""
    way: Way | None = field(default=None, kw_only=True)
    """The way in which all workers must compute; None before the first has begun."""

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @cached_property
    def store(self) -> Store:
        """The store of the parts; each process opens it for itself."""
        return open_store(self.to)

    @abstractmethod
    def name(self, number: int) -> str:
        """The object whose presence in the store shows that the part is done."""

    @abstractmethod
    def place(self, number: int) -> str:
        """The input of a part, for messages."""

    @abstractmethod
    def lines(self, number: int) -> int:
        """The number of lines of a part, for the progress."""

    @abstractmethod
    def begin(self) -> tuple[Any, Way, str]:
        """Begin in a worker: returns its tools, its way, and a line for people."""

    @abstractmethod
    def do(self, number: int, tools: Any, way: Way) -> tuple[Any, bool]:
        """Do a part and commit it. Returns what was noted of it, and True if this output was the
        first to be committed. Errors: ``DragomanError``."""
