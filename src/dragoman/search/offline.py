"""Search for the outputs of many sources where only the total time matters: files, corpora,
evaluation.

Requests are read in windows and sorted within them, longest source first, so that sources of
similar length run together and the last ones of a window are short. The next window begins while
the last requests of the current one still run. Answers come in the order of the requests.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any, TypeVar

from dragoman.models.searched import SearchModel
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.scheduler import CAPACITY_ROWS, Scheduler

WINDOW = 1000
"""The number of requests that are sorted together."""

STEPS_AT_ONCE = 64
"""The most steps that native code takes before it returns to Python."""

REFILL_SHARE = 0.75
"""The share of a batch's rows (hypotheses) that must be free before new requests enter. Python
admits requests, and is slow at first each time, because the processor's caches are then full of
weights."""

Made = TypeVar("Made")
Then = Callable[[int, list[Hypothesis]], Made]


class Searcher:
    """Searches for any number of requests. It keeps its batches between calls, so that short calls
    are cheap.

    Only one call at a time: take all answers of one call before you begin the next.
    """

    def __init__(
        self,
        model: SearchModel,
        *,
        capacity_rows: int = CAPACITY_ROWS,
        window: int = WINDOW,
        workers: int = 1,
        **batch: Any,
    ) -> None:
        """Each of ``workers`` threads has its own batch and, if there are several, one core. The
        other arguments are those of ``Scheduler``."""
        refill_rows = max(1, int(capacity_rows * REFILL_SHARE))
        self._new = partial(
            Scheduler, model, capacity_rows=capacity_rows, refill_rows=refill_rows, **batch
        )
        self._window = window
        self._workers = workers
        self._idle: list[Scheduler] = []

    def __call__(self, requests: Iterable[Request]) -> Iterator[list[Hypothesis]]:
        """Yield the n best hypotheses of each request, in the order of the requests.

        The thread that takes the answers also reads ``requests``, one window at a time and at most
        one window ahead, so ``requests`` may be endless. An exception from reading is raised after
        the answers to the requests read before it. Errors: ``SearchError`` for a request that
        cannot be met.
        """
        return self.each(requests, lambda _, hypotheses: hypotheses)

    def each(self, requests: Iterable[Request], then: Then[Made]) -> Iterator[Made]:
        """Yield ``then(n, hypotheses)`` for each request n, in order.

        The thread that has found an answer calls ``then`` at once, so this work is also spread over
        the cores.
        """
        todo = _Windows(requests, self._window)
        work = partial(_run, todo=todo, then=then)
        count = min(self._workers, todo.read())
        schedulers = [self._idle.pop() if self._idle else self._new() for _ in range(count)]
        early: dict[int, Made] = {}
        with closing(_together(schedulers, work, todo)) as answers:
            for some in answers:
                early.update(some)
                while todo.given in early:
                    yield early.pop(todo.given)
                    todo.given += 1
                todo.read()
        self._idle += schedulers  # not reached after an error, which leaves them of no use
        if todo.error is not None:
            raise todo.error


class _Windows:
    """The numbered requests of one call. One thread reads them, and any thread takes them, the
    longest of a window first.

    At most two windows are held, with their answers: the third is not read before all answers to
    the first were given.
    """

    def __init__(self, requests: Iterable[Request], window: int) -> None:
        self.given = 0
        """The number of answers that were given, in the order of the requests."""
        self.error: Exception | None = None
        """The error that reading raised. Nothing is read after it."""
        self._reader = iter(requests)
        self._window = window
        self._waiting: deque[tuple[int, Request]] = deque()
        self._count = 0
        self._all_read = False

    def __bool__(self) -> bool:
        """True if a request is waiting to be taken."""
        return bool(self._waiting)

    def read(self) -> int:
        """Read the next window, if another may be held. Return the number of its requests."""
        if self._all_read or self._count >= (self.given // self._window + 2) * self._window:
            return 0
        part: list[Request] = []
        try:
            part += islice(self._reader, self._window)
        except Exception as error:  # noqa: BLE001 (raised when its turn has come)
            self.error = error
        self._all_read = len(part) < self._window
        order = sorted(range(len(part)), key=lambda i: -len(part[i].source))
        self._waiting.extend([(self._count + i, part[i]) for i in order])
        self._count += len(part)
        return len(part)

    def take(self) -> tuple[int, Request] | None:
        """Take the next request with its number; None if none is waiting now."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def clear(self) -> None:
        self._waiting.clear()


def _run(
    scheduler: Scheduler, todo: _Windows, then: Then[Made]
) -> Iterator[list[tuple[int, Made]]]:
    """Search for the requests in ``todo``, from which other threads may take as well.

    Yield their numbers, each with the result of ``then`` for its answer.
    """
    number_of: dict[int, int] = {}
    while True:
        while scheduler.free_rows > 0 and (taken := todo.take()):
            number, request = taken
            number_of[scheduler.submit(request)] = number
        if not number_of:
            return
        answers: list[tuple[int, list[Hypothesis]]] = []
        while not answers:
            answers = scheduler.advance(STEPS_AT_ONCE)
        pairs = [(number_of.pop(ticket), hypotheses) for ticket, hypotheses in answers]
        yield [(number, then(number, hypotheses)) for number, hypotheses in pairs]


def _together(
    schedulers: Sequence[Scheduler],
    work: Callable[[Scheduler], Iterator[list[tuple[int, Made]]]],
    todo: _Windows,
) -> Generator[list[tuple[int, Made]]]:
    """Run ``work`` in one thread per scheduler while requests are left in ``todo``, and yield the
    results. An exception in one of the threads is raised here. A single scheduler works in this
    thread.

    torch's own threads would only compete with these, so each thread keeps torch to one core
    meanwhile.
    """
    if len(schedulers) < 2:
        for scheduler in schedulers:
            yield from work(scheduler)
        return
    answers: SimpleQueue[list[tuple[int, Made]] | Future[Scheduler]] = SimpleQueue()
    stop = threading.Event()

    def serve(scheduler: Scheduler) -> Scheduler:
        for some in work(scheduler):
            answers.put(some)
            if stop.is_set():
                break
        return scheduler

    torch = sys.modules.get("torch")  # where nobody has imported it, it has no threads
    before = torch.get_num_threads() if torch else 0
    to_one_core = partial(torch.set_num_threads, 1) if torch else None
    with ThreadPoolExecutor(len(schedulers), initializer=to_one_core) as threads:
        idle, busy = list(schedulers), 0
        try:
            while True:
                # Who finds nothing to do does not wait for it: a thread that waits for answers to
                # be taken would wait for ever where nobody takes them.
                while todo and idle:
                    threads.submit(serve, idle.pop()).add_done_callback(answers.put)
                    busy += 1
                if not busy:
                    return
                some = answers.get()
                if isinstance(some, Future):
                    idle.append(some.result())
                    busy -= 1
                else:
                    yield some
        finally:
            stop.set()
            todo.clear()
            if torch:
                torch.set_num_threads(before)
