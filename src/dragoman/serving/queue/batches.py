"""The two batches of a worker: of searches that cost little, and of costly ones.

Each step of a batch waits for all of its rows, and all of them move when a search joins or
leaves. So costly searches (``cost.py``) have a batch of their own. While both batches have
work they share the worker's time: whoever asks for little is slowed down by a part of that time,
however large the costly searches are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.scheduler import Scheduler

COSTLY_SHARE = 0.25
"""Costly searches hold at most so large a part of the rows, whoever asks for them, or one of them
does; and where others are under way, they have so large a part of the time."""


class Asks(Protocol):
    """A request of a client: some sentences, watched as they grow or not."""

    requests: Sequence[Request]
    watched: bool


Queued = TypeVar("Queued", bound=Asks)


class QueueBatch(Generic[Queued]):
    """Searches that take their steps together."""

    def __init__(
        self, new_scheduler: Callable[[], Scheduler], share: float, clock: Callable[[], float]
    ) -> None:
        """``share`` of the time, while the other batch has work too."""
        self.running: dict[int, tuple[Queued, int]] = {}
        """By ticket: whose, and which sentence."""
        self.watched: set[int] = set()
        self.spent = 0.0
        """Seconds of steps over ``share``: the batch that has spent less is next."""
        self._share = share
        self._clock = clock
        self._new_scheduler = new_scheduler
        self.scheduler = new_scheduler()

    def submit(self, queued: Queued, number: int) -> None:
        """A sentence of a request begins."""
        ticket = self.scheduler.take(queued.requests[number])
        self.running[ticket] = queued, number
        if queued.watched:
            self.watched.add(ticket)

    def advance(self, steps: int, free: int) -> list[tuple[int, list[Hypothesis]]]:
        """As ``Scheduler.advance``; its time is counted."""
        began = self._clock()
        done = self.scheduler.advance(steps, free)
        self.spent += (self._clock() - began) / self._share
        return done

    def clear(self) -> None:
        """Forget all, after a failure."""
        self.running.clear()
        self.watched.clear()
        self.scheduler = self._new_scheduler()


class Batches(Generic[Queued]):
    """Both of them."""

    def __init__(
        self,
        new_scheduler: Callable[[], Scheduler],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.little: QueueBatch[Queued] = QueueBatch(new_scheduler, 1 - COSTLY_SHARE, clock)
        self.costly: QueueBatch[Queued] = QueueBatch(new_scheduler, COSTLY_SHARE, clock)

    @property
    def running(self) -> int:
        """Searches under way."""
        return len(self.little.running) + len(self.costly.running)

    @property
    def rows(self) -> int:
        """Hypotheses under way."""
        return self.little.scheduler.rows + self.costly.scheduler.rows

    def submit(self, queued: Queued, number: int, *, is_costly: bool) -> None:
        """A sentence of a request begins."""
        batch, other = self.little, self.costly
        if is_costly:
            batch, other = other, batch
        if not batch.running and other.running:
            # What it has not used while it had nothing to do is not made up for.
            batch.spent = max(batch.spent, other.spent)
        batch.submit(queued, number)

    def next(self) -> QueueBatch[Queued]:
        """Whose step is next."""
        if not self.costly.running:
            return self.little
        if not self.little.running:
            return self.costly
        return min(self.little, self.costly, key=lambda batch: batch.spent)
