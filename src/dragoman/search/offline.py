"""Searching many sources at once when only the whole matters: files, corpora, evaluation.

Requests are read in windows and sorted within them, longest first, so that what runs together is
of like length and the last ones under way are short. Answers come in the order of the requests.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import TypeVar

import torch

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.scheduler import CAPACITY_ROWS, CAPACITY_TOKENS, Scheduler, Searchable

WINDOW = 1000
"""Requests that are sorted together."""

STEPS_AT_ONCE = 64
"""Of a native search, before Python looks at it again."""

REFILL_SHARE = 0.75
"""New requests wait until so large a part of the rows is free. To let them in is Python's work,
which is slow each time it begins: the processor's caches are full of weights then."""

Made = TypeVar("Made")
Then = Callable[[int, list[Hypothesis]], Made]


class Searcher:
    """Searches for any number of requests. It keeps its batches, so that short calls are cheap.

    One call at a time: the answers of one must be taken before the next begins.
    """

    def __init__(
        self,
        model: Searchable,
        *,
        bos: int,
        eos: int,
        capacity_rows: int = CAPACITY_ROWS,
        capacity_tokens: int = CAPACITY_TOKENS,
        forbidden: Sequence[int] = (),
        device: torch.device | str = "cpu",
        window: int = WINDOW,
        workers: int = 1,
    ) -> None:
        """Each of ``workers`` threads has a batch of its own and, with several, one core. The other
        arguments are those of ``Scheduler``.
        """
        self._new = partial(
            Scheduler,
            model,
            bos=bos,
            eos=eos,
            capacity_rows=capacity_rows,
            capacity_tokens=capacity_tokens,
            refill_rows=max(1, int(capacity_rows * REFILL_SHARE)),
            forbidden=forbidden,
            device=device,
        )
        self._window = window
        self._workers = workers
        self._idle: list[Scheduler] = []

    def __call__(self, requests: Iterable[Request]) -> Iterator[list[Hypothesis]]:
        """The n best hypotheses of each request, in the order of the requests.

        ``requests`` is read one window at a time, so it may be endless. Raises SearchError if a
        request cannot be met.
        """
        return self.each(requests, lambda _, hypotheses: hypotheses)

    def each(self, requests: Iterable[Request], then: Then[Made]) -> Iterator[Made]:
        """What ``then(n, hypotheses)`` makes of the answer to request n, in their order.

        It is called as soon as the answer is there, by the thread that has found it, so that its
        work is spread over the cores too.
        """
        reader = iter(requests)
        before = 0
        while part := list(islice(reader, self._window)):
            order = sorted(range(len(part)), key=lambda i: -part[i].source.shape[0])
            todo = deque((before + i, part[i]) for i in order)
            work = partial(_run, todo=todo, then=then)
            schedulers = [self._take() for _ in range(min(self._workers, len(part)))]
            if len(schedulers) > 1:
                yield from _in_order(_together(schedulers, work, todo.clear), before)
            else:
                yield from _in_order(work(schedulers[0]), before)
            before += len(part)
            self._idle += schedulers  # not reached after an error, which leaves them of no use

    def _take(self) -> Scheduler:
        return self._idle.pop() if self._idle else self._new()


def _in_order(answers: Iterator[list[tuple[int, Made]]], turn: int) -> Iterator[Made]:
    """Hold back what comes before its turn; ``turn`` is the first number."""
    early: dict[int, Made] = {}
    for some in answers:
        early.update(some)
        while turn in early:
            yield early.pop(turn)
            turn += 1


def _run(
    scheduler: Scheduler, todo: deque[tuple[int, Request]], then: Then[Made]
) -> Iterator[list[tuple[int, Made]]]:
    """Search for what stands in ``todo``, which other threads may empty too.

    Its numbers come back with what ``then`` makes of the answers.
    """
    number_of: dict[int, int] = {}
    while True:
        while scheduler.free_rows > 0:
            try:
                number, request = todo.popleft()
            except IndexError:
                break
            number_of[scheduler.submit(request)] = number
        if scheduler.idle:
            return
        answers: list[tuple[int, list[Hypothesis]]] = []
        with torch.no_grad():  # entered here, since entering it takes time in every step
            while not answers and not scheduler.idle:
                answers = scheduler.advance(STEPS_AT_ONCE)
        found = [(number_of.pop(ticket), hypotheses) for ticket, hypotheses in answers]
        yield [(number, then(number, hypotheses)) for number, hypotheses in found]


def _together(
    schedulers: Sequence[Scheduler],
    work: Callable[[Scheduler], Iterator[list[tuple[int, Made]]]],
    give_up: Callable[[], None],
) -> Iterator[list[tuple[int, Made]]]:
    """``work`` with one thread per scheduler; what one of them raises is raised here.

    torch's own threads would only be in their way, so each keeps to one core meanwhile.
    """
    answers: SimpleQueue[list[tuple[int, Made]] | None] = SimpleQueue()
    stop = threading.Event()

    def serve(scheduler: Scheduler) -> None:
        for some in work(scheduler):
            answers.put(some)
            if stop.is_set():
                return

    before = torch.get_num_threads()
    with ThreadPoolExecutor(
        len(schedulers), initializer=partial(torch.set_num_threads, 1)
    ) as threads:
        futures = [threads.submit(serve, scheduler) for scheduler in schedulers]
        for future in futures:
            future.add_done_callback(lambda _: answers.put(None))
        try:
            running = len(futures)
            while running:
                some = answers.get()
                if some is not None:
                    yield some
                    continue
                running -= 1
                for future in futures:
                    if future.done():
                        future.result()
        finally:
            stop.set()
            give_up()
            torch.set_num_threads(before)
