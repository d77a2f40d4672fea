"""Searching many sources at once when only the whole matters: files, corpora, evaluation.

Requests are read in windows and sorted within them, longest first, so that what runs together is
of like length and the last ones under way are short. Answers come in the order of the requests.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any

import torch

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.scheduler import CAPACITY_ROWS, CAPACITY_TOKENS, Scheduler, Searchable

WINDOW = 1000
"""Requests that are sorted together."""

STEPS_AT_ONCE = 64
"""Of a native search, before Python looks at it again."""

REFILL_SHARE = 4
"""New requests wait until one in so many rows is free, so that encoding them pays."""

Answer = tuple[int, list[Hypothesis]]


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
            refill_rows=max(1, capacity_rows // REFILL_SHARE),
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
        reader = iter(requests)
        while part := list(islice(reader, self._window)):
            order = sorted(range(len(part)), key=lambda i: -part[i].source.shape[0])
            todo = deque((i, part[i]) for i in order)
            schedulers = [self._take() for _ in range(min(self._workers, len(part)))]
            if len(schedulers) > 1:
                yield from _in_order(_together(schedulers, todo))
            else:
                yield from _in_order(_run(schedulers[0], todo))
            self._idle += schedulers  # not reached after an error, which leaves them of no use

    def _take(self) -> Scheduler:
        return self._idle.pop() if self._idle else self._new()


def search(
    model: Searchable, requests: Iterable[Request], *, bos: int, eos: int, **settings: Any
) -> Iterator[list[Hypothesis]]:
    """What ``Searcher`` gives, for once. ``settings`` are its other arguments."""
    yield from Searcher(model, bos=bos, eos=eos, **settings)(requests)


def _in_order(answers: Iterator[Answer]) -> Iterator[list[Hypothesis]]:
    """Hold back what comes before its turn."""
    early: dict[int, list[Hypothesis]] = {}
    turn = 0
    for index, hypotheses in answers:
        early[index] = hypotheses
        while turn in early:
            yield early.pop(turn)
            turn += 1


def _run(scheduler: Scheduler, todo: deque[tuple[int, Request]]) -> Iterator[Answer]:
    """Search for what stands in ``todo``, which other threads may empty too."""
    index_of: dict[int, int] = {}
    while True:
        while scheduler.free_rows > 0:
            try:
                index, request = todo.popleft()
            except IndexError:
                break
            index_of[scheduler.submit(request)] = index
        if scheduler.idle:
            return
        answers: list[tuple[int, list[Hypothesis]]] = []
        with torch.no_grad():  # entered here, since entering it takes time in every step
            while not answers and not scheduler.idle:
                answers = scheduler.advance(STEPS_AT_ONCE)
        for ticket, hypotheses in answers:
            yield index_of.pop(ticket), hypotheses


def _together(
    schedulers: Sequence[Scheduler], todo: deque[tuple[int, Request]]
) -> Iterator[Answer]:
    """Search with one thread per scheduler; what one of them raises is raised here.

    torch's own threads would only be in their way, so each keeps to one core meanwhile.
    """
    answers: SimpleQueue[Answer | None] = SimpleQueue()
    stop = threading.Event()

    def work(scheduler: Scheduler) -> None:
        for answer in _run(scheduler, todo):
            answers.put(answer)
            if stop.is_set():
                return

    before = torch.get_num_threads()
    with ThreadPoolExecutor(
        len(schedulers), initializer=partial(torch.set_num_threads, 1)
    ) as threads:
        futures = [threads.submit(work, scheduler) for scheduler in schedulers]
        for future in futures:
            future.add_done_callback(lambda _: answers.put(None))
        try:
            running = len(futures)
            while running:
                answer = answers.get()
                if answer is not None:
                    yield answer
                    continue
                running -= 1
                for future in futures:
                    if future.done():
                        future.result()
        finally:
            stop.set()
            todo.clear()
            torch.set_num_threads(before)
