"""What workers are told: picklable, the same for all."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata

from dragoman.cluster.parts.mapper import LineMapper, MakeMapper, Way
from dragoman.cluster.parts.part import PartNote, do_part
from dragoman.cluster.parts.plan import PartsPlan
from dragoman.cluster.parts.work import Work


@dataclass(frozen=True)
class Job(Work):
    """A plan, where its parts go, and what is done to lines."""

    plan: PartsPlan
    to: str
    make: MakeMapper
    way: Way | None = None

    def __reduce__(self) -> tuple[type[Job], tuple[PartsPlan, str, MakeMapper, Way | None]]:
        return Job, (self.plan, self.to, self.make, self.way)  # a store is opened by each process

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

    def with_way(self, way: Way | None) -> Job:
        return replace(self, way=way)

    def begun(self) -> tuple[LineMapper, Way, str]:
        """The model, computing as the job wishes if this machine can."""
        way = self.way
        if way is not None and way.level:
            from dragoman.native import library

            if way.level in library.offered():
                os.environ["DRAGOMAN_NATIVE"] = way.level
                library.reset()
        mapper = self.make("" if way is None else way.precision)
        return mapper, way_of(mapper), mapper.description

    def do(
        self, number: int, tools: LineMapper, way: Way, told: Callable[[int], None] = lambda _: None
    ) -> tuple[PartNote, bool]:
        return do_part(self.plan, number, self.places[number], tools, way, self.store, told)


def way_of(mapper: LineMapper) -> Way:
    """How a mapper computes in this process."""
    return Way(mapper.precision, mapper.level, version("dragoman"), version("torch"))


def version(name: str) -> str:
    """Of an installed distribution; torch's without its build."""
    return metadata.version(name).partition("+")[0]
