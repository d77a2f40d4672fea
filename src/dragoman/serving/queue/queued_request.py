"""A request in a queue, what the event loop and the threads of a search tell each other of it, and
whose sentence is next: every client in turn, and every request of a client in turn.

So a client who sends a book does not keep another, who sends a line, waiting; nor does a client's
own book keep its own line waiting. Within a request the order is kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

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
    def next(self) -> Request:
        """The next sentence that is to be taken."""
        return self.requests[self.taken]

    @property
    def done(self) -> bool:
        return self.left == 0 or self.failure is not None

    def wake(self) -> None:
        """Tell the event loop, from any thread, that there is something to read."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.changed.set)


T = TypeVar("T")


class Turns(Generic[T]):
    """What clients wait for: each client has its turn after all others. Not thread-safe."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        """Of each client that waits."""
        self._order: deque[str] = deque()
        """Clients that wait, the next first."""
        self._away: set[str] = set()
        """Clients whose turn it is: they are not in the order until it has ended."""

    def add(self, client: str, one: T) -> None:
        """The last of its client, whose turn comes last if it has nothing else that waits."""
        self._waiting.setdefault(client, deque()).append(one)
        self._join(client)

    def take(self, may: Callable[[T], bool] = lambda _: True) -> tuple[str, T] | None:
        """The client whose turn begins and what it takes; None when nothing waits that ``may`` be
        taken now: who may not keeps the turn."""
        for client in self._order:
            for one in self._waiting[client]:
                if may(one):
                    self._away.add(client)
                    self._order.remove(client)
                    self.forget(client, one)
                    return client, one
        return None

    def end(self, client: str) -> None:
        """A turn has ended: who came meanwhile is before this client."""
        self._away.discard(client)
        if client in self._waiting:
            self._join(client)

    def forget(self, client: str, one: T) -> None:
        """Forget what nobody waits for any more."""
        waiting = self._waiting.get(client)
        if waiting is not None and one in waiting:
            waiting.remove(one)
            if not waiting:
                del self._waiting[client]
                if client in self._order:
                    self._order.remove(client)

    def _join(self, client: str) -> None:
        if client not in self._away and client not in self._order:
            self._order.append(client)


class FairQueue(Turns[QueuedRequest]):
    """Requests of clients that have sentences left to take."""

    def take_sentence(
        self, may: Callable[[QueuedRequest], bool] = lambda _: True
    ) -> tuple[QueuedRequest, int] | None:
        """The next request and the number of its sentence; as ``take``."""
        found = self.take(may)
        if found is None:
            return None
        client, queued = found
        queued.taken += 1
        if queued.taken < len(queued.requests):
            self.add(client, queued)
        self.end(client)
        return queued, queued.taken - 1
