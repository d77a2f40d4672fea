"""Workers that do their parts in this process, one event after another, and die where a test says
so. Not a test: tests import it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.work import Work
from dragoman.cluster.workers.workers import (
    Died,
    Done,
    Event,
    Progress,
    Ready,
    Refused,
    Workers,
)
from dragoman.errors import DragomanError


class InlineWorkers(Workers):
    """``dies``: whether a worker dies at a part, asked before it begins with it. ``ways``: those of
    each worker that is started; the last one is that of all further ones."""

    def __init__(
        self,
        number: int,
        dies: Callable[[int], bool] = lambda part: False,
        ways: Sequence[Way] | None = None,
        before_part: Callable[[int], None] = lambda part: None,
    ) -> None:
        self.number = number
        self._dies, self._before_part = dies, before_part
        self._ways = None if ways is None else deque(ways)
        self._running: dict[int, tuple[Work, Any, Way]] = {}
        self._events: deque[Event] = deque()
        self.given: list[int] = []
        """Parts, in the order in which they were given."""

    def start(self, worker: int, work: Work) -> None:
        try:
            tools, way, description = work.begun()
        except DragomanError as error:
            self._events.append(Refused(worker, str(error)))
            return
        if self._ways is not None:
            way = self._ways.popleft() if len(self._ways) > 1 else self._ways[0]
        self._running[worker] = work, tools, way
        self._events.append(Ready(worker, way, description))

    def give(self, worker: int, part: int) -> None:
        self.given.append(part)
        work, tools, way = self._running[worker]
        self._before_part(part)
        if self._dies(part):
            del self._running[worker]
            self._events.append(Died(worker, "it was ended by a test"))
            return
        try:
            note, own = work.do(part, tools, way)
        except DragomanError as error:
            self._events.append(Refused(worker, str(error)))
            return
        self._events += [Progress(worker, note.lines), Done(worker, note, own)]

    def wait(self, seconds: float) -> Sequence[Event]:
        return [self._events.popleft()] if self._events else []

    def stop(self, worker: int) -> None:
        self._running.pop(worker, None)

    def close(self) -> None:
        self._running.clear()
