"""What the stages have in common: a part of a stage is some objects, of which the last one says
that it is done. The same part gives the same bytes, so it does not matter who wrote which."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.part import PartNote
from dragoman.cluster.parts.plan import NOTES
from dragoman.cluster.parts.work import Work
from dragoman.cluster.prepare.data_plan import DataPlan, check_versions

Content = bytes | Iterable[bytes]
"""Of an object; in blocks where it may be large."""


@dataclass(frozen=True)
class PlanStage(Work):
    """One stage of a plan."""

    plan: DataPlan
    to: str
    way: Way | None = None

    title: ClassVar[str]
    """What people are told when it begins."""
    folder: ClassVar[str]
    last: ClassVar[str]
    """The ending of the object that is written last."""

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.plan, self.to, self.way)  # a store is opened by each process

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self.plan.parts)

    @abstractmethod
    def result(self, number: int, tools: Any) -> Mapping[str, Content]:
        """The objects of a part by their names, the last one last."""

    def name(self, number: int) -> str:
        return place_of(self.folder, number, self.last)

    def place(self, number: int) -> str:
        return self.plan.place(number)

    def lines(self, number: int) -> int:
        return self.plan.lines_of(number)

    def with_way(self, way: Way | None) -> Self:
        return replace(self, way=way)

    def tools(self) -> Any:
        """What a worker needs for all its parts."""
        return None

    def begun(self) -> tuple[Any, Way, str]:
        check_versions(self.plan, self.to)
        return self.tools(), Way(), self.title

    def do(
        self, number: int, tools: Any, way: Way, told: Callable[[int], None] = lambda _: None
    ) -> tuple[PartNote, bool]:
        own, name = False, ""
        for name, content in self.result(number, tools).items():
            own = self.store.create_of(name, [content] if isinstance(content, bytes) else content)
        lines = self.lines(number)
        told(lines)
        return PartNote(number, name, lines, 0, "", 0, (), ""), own


def place_of(folder: str, number: int, ending: str) -> str:
    """The name of one object of a part."""
    return f"{NOTES}/{folder}/{number:07}.{ending}"
