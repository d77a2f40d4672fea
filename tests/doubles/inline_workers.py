"""Workers that do their parts in this process, and die where a test says so. Not a test: tests
import it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from dragoman.cluster.parts.job import Work
from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.workers import Answer, Hand, Workers


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
        self._running: dict[int, Hand] = {}
        self.given: list[int] = []
        """Parts, in the order in which they were given."""

    def start(self, worker: int, work: Work) -> Future[Answer]:
        hand = self._running[worker] = Hand()
        answer = hand.open(work)
        if self._ways is not None and not isinstance(answer, str):
            way = self._ways.popleft() if len(self._ways) > 1 else self._ways[0]
            hand._way, answer = way, (way, str(answer[1]))
        return _answered(answer)

    def give(self, worker: int, part: int) -> Future[Answer]:
        self.given.append(part)
        self._before_part(part)
        if self._dies(part):
            lost = Future[Answer]()
            lost.set_exception(ValueError("it was ended by a test"))
            return lost
        return _answered(self._running[worker].do(part))

    def stop(self, worker: int) -> None:
        self._running.pop(worker, None)

    def close(self) -> None:
        self._running.clear()


def _answered(answer: Answer) -> Future[Answer]:
    future = Future[Answer]()
    future.set_result(answer)
    return future
