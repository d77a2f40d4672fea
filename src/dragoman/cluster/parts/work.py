"""What is done in parts: numbered, each committed once by a name of its own in a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.part import PartNote
from dragoman.stores.opened import opened
from dragoman.stores.store import Store


class Work(ABC):
    """What the driver and the workers know of it. It is picklable, and the same for all."""

    to: str
    """The address of the store of parts."""
    way: Way | None
    """How all workers are to compute, if one has begun already."""

    @cached_property
    def store(self) -> Store:
        """Where parts go; each process opens it for itself."""
        return opened(self.to)

    @abstractmethod
    def name(self, number: int) -> str:
        """What stands in the store when a part is done."""

    @abstractmethod
    def place(self, number: int) -> str:
        """What messages call the input of a part."""

    @abstractmethod
    def lines(self, number: int) -> int:
        """Of a part, by which progress is told."""

    @abstractmethod
    def with_way(self, way: Way | None) -> Self:
        """The same, to be computed so."""

    @abstractmethod
    def begun(self) -> tuple[Any, Way, str]:
        """What a worker begins with: its tools, how they compute, and a line for people."""

    @abstractmethod
    def do(
        self, number: int, tools: Any, way: Way, told: Callable[[int], None] = lambda _: None
    ) -> tuple[PartNote, bool]:
        """Do a part and commit it: what is noted of it, and whether it is this one that stands.

        ``told``: gets how many more lines are done. Errors: ``DragomanError``.
        """

    def described(self, number: int) -> str:
        """A part in messages."""
        return f"{self.name(number)} ({self.place(number)})"
