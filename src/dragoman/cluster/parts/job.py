"""What workers are told: picklable, the same for all."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import metadata
from typing import Any, Self

from dragoman.cluster.parts.mapper import LineMapper, MakeMapper, Way
from dragoman.cluster.parts.part import PartNote, do_part
from dragoman.cluster.parts.plan import PartsPlan
from dragoman.stores.opened import opened
from dragoman.stores.store import Store


@dataclass(frozen=True)
class Work(ABC):
    """What is done in parts, numbered, each committed once by a name of its own in a store: what
    the driver and the workers know of it."""

    to: str
    """The address of the store of parts."""
    way: Way | None = field(default=None, kw_only=True)
    """How all workers are to compute, if one has begun already."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "store"}

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

    def with_way(self, way: Way | None) -> Self:
        """The same, to be computed so."""
        return replace(self, way=way)

    @abstractmethod
    def begun(self) -> tuple[Any, Way, str]:
        """What a worker begins with: its tools, how they compute, and a line for people."""

    @abstractmethod
    def do(self, number: int, tools: Any, way: Way) -> tuple[PartNote, bool]:
        """Do a part and commit it: what is noted of it, and whether it is this one that stands.
        Errors: ``DragomanError``."""

    def described(self, number: int) -> str:
        """A part in messages."""
        return f"{self.name(number)} ({self.place(number)})"


@dataclass(frozen=True)
class Job(Work):
    """A plan, where its parts go, and what is done to lines."""

    plan: PartsPlan
    make: MakeMapper

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """``plan.parts``, by number."""
        return self.plan.parts

    def name(self, number: int) -> str:
        return self.plan.name(number, self.places[number])

    def place(self, number: int) -> str:
        return self.plan.part(self.places[number])[1].place

    def lines(self, number: int) -> int:
        return self.plan.part(self.places[number])[1].stretches[0].lines

    def begun(self) -> tuple[LineMapper, Way, str]:
        """The model, computing as the job wishes if this machine can."""
        way = self.way
        if way is not None and way.level:
            from dragoman.native import library

            if way.level in library.offered():
                os.environ["DRAGOMAN_NATIVE"] = way.level
                library.reset()
        mapper = self.make("" if way is None else way.precision)
        own = Way(mapper.precision, mapper.level, version("dragoman"), version("torch"))
        return mapper, own, mapper.description

    def do(self, number: int, tools: LineMapper, way: Way) -> tuple[PartNote, bool]:
        return do_part(self.plan, number, self.places[number], tools, way, self.store)


def version(name: str) -> str:
    """Of an installed distribution; torch's without its build."""
    return metadata.version(name).partition("+")[0]
