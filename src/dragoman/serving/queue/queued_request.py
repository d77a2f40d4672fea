"""A request in a queue: what the event loop and the threads of a search tell each other of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.serving.queue.cost import is_costly


@dataclass(frozen=True)
class Draft:
    """A sentence as it stands while it is being searched."""

    number: int
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Answer:
    """A sentence whose search is done: its n best."""

    number: int
    hypotheses: list[Hypothesis]


class QueuedRequest:
    """A request: its sentences. Made and read in the event loop, filled by a worker."""

    def __init__(self, client: str, requests: Sequence[Request], watched: bool) -> None:
        self.client = client
        self.requests = requests
        self.answers: list[list[Hypothesis] | None] = [None] * len(requests)
        self.has_costly = any(map(is_costly, requests))
        self.left = len(requests)
        self.taken = 0
        self.wanted = True
        self.failure: Exception | None = None
        self.watched = watched
        self.news: dict[int, Draft | Answer] = {}
        """For those who watch, the newest of each sentence. Guarded by the queue's lock."""
        self.shown = 0.0
        self._loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()

    @property
    def next(self) -> Request | None:
        """The next sentence that is to be taken."""
        if not self.wanted or self.taken == len(self.requests):
            return None
        return self.requests[self.taken]

    def take(self) -> int | None:
        if self.next is None:
            return None
        self.taken += 1
        return self.taken - 1

    @property
    def done(self) -> bool:
        return self.left == 0 or self.failure is not None

    def wake(self) -> None:
        """Tell the event loop, from any thread, that there is something to read."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.changed.set)
