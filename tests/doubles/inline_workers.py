"""Workers that do their parts in this process, and die where a test says so. Not a test: tests
import it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from dragoman.cluster.work import Answer, Hand, Way, Work, Worker, Workers


class InlineWorkers:
    """``dies``: whether a worker dies at a part, asked before it begins with it. ``ways``: those of
    each worker that is started; the last one is that of all further ones."""

    def __init__(
        self,
        number: int,
        dies: Callable[[int], bool] = lambda part: False,
        ways: Sequence[Way] | None = None,
        before_part: Callable[[int], None] = lambda part: None,
        before_open: Callable[[Work], None] = lambda work: None,
    ) -> None:
        self.dies, self.before_part, self.before_open = dies, before_part, before_open
        self.ways = None if ways is None else deque(ways)
        self.given: list[int] = []
        """Parts, in the order in which they were given."""
        self.all: Workers = (number, lambda: _inline_worker(self))


def _inline_worker(of: InlineWorkers) -> Worker:
    inline = _Inline(of)
    return Worker(inline.ask, lambda: None)


class _Inline:
    def __init__(self, of: InlineWorkers) -> None:
        self._of, self._hand = of, Hand()

    def ask(self, asked: Work | int) -> Future[Answer]:
        future = Future[Answer]()
        if isinstance(asked, Work):
            future.set_result(self._opened(asked))
            return future
        self._of.given.append(asked)
        self._of.before_part(asked)
        if self._of.dies(asked):
            future.set_exception(ValueError("it was ended by a test"))
        else:
            future.set_result(self._hand.answer(asked))
        return future

    def _opened(self, work: Work) -> Answer:
        self._of.before_open(work)
        answer, ways = self._hand.answer(work), self._of.ways
        if ways is None or isinstance(answer, str):
            return answer
        self._hand._way = ways.popleft() if len(ways) > 1 else ways[0]
        return self._hand._way, answer[1]
