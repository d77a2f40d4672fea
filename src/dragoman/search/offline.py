"""Searching many sources at once when only the whole matters: files, corpora, evaluation.

Requests are read in windows and sorted within them, longest first, so that what runs together is
of like length and the last ones under way are short. Answers come in the order of the requests.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue

import torch

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.scheduler import CAPACITY_ROWS, CAPACITY_TOKENS, Scheduler, Searchable

WINDOW = 1000
"""Requests that are sorted together."""

REFILL_SHARE = 4
"""New requests wait until one in so many rows is free, so that encoding them pays."""

Answer = tuple[int, list[Hypothesis]]


def search(
    model: Searchable,
    requests: Iterable[Request],
    *,
    bos: int,
    eos: int,
    capacity_rows: int = CAPACITY_ROWS,
    capacity_tokens: int = CAPACITY_TOKENS,
    forbidden: Sequence[int] = (),
    device: torch.device | str = "cpu",
    window: int = WINDOW,
    workers: int = 1,
) -> Iterator[list[Hypothesis]]:
    """The n best hypotheses of each request, in the order of the requests.

    ``requests`` is read one window at a time, so it may be endless. Each of ``workers`` threads
    has a batch of its own and takes from the window what comes next; with several, give each one
    core (``torch.set_num_threads(1)``). The other arguments are those of ``Scheduler``. Raises
    SearchError if a request cannot be met.
    """
    reader = iter(requests)
    while part := list(islice(reader, window)):
        order = sorted(range(len(part)), key=lambda i: -part[i].source.shape[0])
        todo = deque((i, part[i]) for i in order)
        schedulers = [
            Scheduler(
                model,
                bos=bos,
                eos=eos,
                capacity_rows=capacity_rows,
                capacity_tokens=capacity_tokens,
                refill_rows=max(1, capacity_rows // REFILL_SHARE),
                forbidden=forbidden,
                device=device,
            )
            for _ in range(min(workers, len(part)))
        ]
        answers = _together(schedulers, todo) if len(schedulers) > 1 else _run(schedulers[0], todo)
        yield from _in_order(answers)


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
                answers = scheduler.advance()
        for ticket, hypotheses in answers:
            yield index_of.pop(ticket), hypotheses


def _together(
    schedulers: Sequence[Scheduler], todo: deque[tuple[int, Request]]
) -> Iterator[Answer]:
    """Search with one thread per scheduler; what one of them raises is raised here."""
    answers: SimpleQueue[Answer | None] = SimpleQueue()
    stop = threading.Event()

    def work(scheduler: Scheduler) -> None:
        for answer in _run(scheduler, todo):
            answers.put(answer)
            if stop.is_set():
                return

    with ThreadPoolExecutor(len(schedulers)) as threads:
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
