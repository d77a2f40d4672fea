"""What workers are told: picklable, the same for all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata

from dragoman.cluster.parts.mapper import LineMapper, MakeMapper, Way
from dragoman.cluster.parts.plan import Plan
from dragoman.cluster.stores.opened import opened
from dragoman.cluster.stores.store import Store


@dataclass(frozen=True)
class Job:
    """A plan, where its parts go, and what is done to lines."""

    plan: Plan
    to: str
    """The address of the store of parts."""
    make: MakeMapper
    way: Way | None = None
    """How all workers are to compute, if one has begun already."""

    def __reduce__(self) -> tuple[type[Job], tuple[Plan, str, MakeMapper, Way | None]]:
        return Job, (self.plan, self.to, self.make, self.way)  # a store is opened by each process

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """``plan.parts``, by number."""
        return self.plan.parts

    @cached_property
    def store(self) -> Store:
        """Where parts go."""
        return opened(self.to)

    def name(self, number: int) -> str:
        """Of the output of a part."""
        return self.plan.name(number, self.places[number])

    def with_way(self, way: Way | None) -> Job:
        """The same, to be computed so."""
        return replace(self, way=way)


def way_of(mapper: LineMapper) -> Way:
    """How a mapper computes in this process."""
    return Way(mapper.precision, mapper.level, version("dragoman"), version("torch"))


def version(name: str) -> str:
    """Of an installed distribution; torch's without its build."""
    return metadata.version(name).partition("+")[0]
