"""Work in parts, as the driver and the workers know it; and how all workers compute."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from dragoman.stores.opened import opened
from dragoman.stores.store import Store, StoreError

NOTES = "_dragoman"
"""The folder beside the parts: programs that read folders of data leave such names out."""
_WAY = f"{NOTES}/way.json"
_TRIAL = f"{NOTES}/trial-"


@dataclass(frozen=True)
class Way:
    """How a worker computes. Results of two ways may differ in rare ties."""

    precision: str = "fp32"
    level: str = ""
    """The instruction set of the kernels; nothing for plain torch."""
    dragoman: str = ""
    torch: str = ""

    @property
    def words(self) -> str:
        """For messages."""
        by = f"native kernels for {self.level}" if self.level else "plain torch"
        return f"{self.precision} by {by}, dragoman {self.dragoman}, torch {self.torch}"


def agreed_way(store: Store, own: Way) -> Way:
    """How all workers compute: the way that stands, or from now on this one."""
    store.create(_WAY, json.dumps(asdict(own)).encode())
    found = way_that_stands(store)
    assert found is not None, "it was created if it was not there"
    return found


def way_that_stands(store: Store) -> Way | None:
    """None before the first worker is ready."""
    found = store.content(_WAY)
    if found is None:
        return None
    try:
        return Way(**json.loads(found))
    except (ValueError, TypeError) as error:
        raise StoreError(f"{store.place(_WAY)} is damaged: {error!r}") from error


def check_conditional(store: Store) -> None:
    """Errors: ``StoreError`` where a second writer would not be refused: a part could be written
    twice."""
    name = f"{_TRIAL}{os.urandom(8).hex()}"
    store.create(name, b"first")
    refused = not store.create(name, b"second")
    stands = store.content(name)
    store.remove(name)
    if not refused or stands != b"first":
        raise StoreError(
            f"{store.address} takes a second write of the same name, so that two workers could "
            "write one part. It needs conditional writes (If-None-Match): S3, GCS, Azure and "
            "current MinIO have them"
        )


@dataclass(frozen=True)
class Work(ABC):
    """Parts that are numbered, each committed once by a name of its own in a store. All workers get
    the same, which is picklable."""

    to: str
    """The address of the store of parts."""
    way: Way | None = field(default=None, kw_only=True)
    """How all workers are to compute, if one has begun already."""

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def store(self) -> Store:
        """The store that the parts go to; each process opens it for itself."""
        return opened(self.to)

    @abstractmethod
    def name(self, number: int) -> str:
        """The object that stands in the store when a part is done."""

    @abstractmethod
    def place(self, number: int) -> str:
        """The input of a part, in messages."""

    @abstractmethod
    def lines(self, number: int) -> int:
        """The lines of a part, by which progress is told."""

    def with_way(self, way: Way | None) -> Self:
        """The same, to be computed so."""
        return replace(self, way=way)

    @abstractmethod
    def begun(self) -> tuple[Any, Way, str]:
        """Begin in a worker: its tools, how they compute, and a line for people."""

    @abstractmethod
    def do(self, number: int, tools: Any, way: Way) -> tuple[Any, bool]:
        """Do a part and commit it: what was seen in it, and whether it is this one that stands.
        Errors: ``DragomanError``."""
