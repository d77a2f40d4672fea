"""Requests in a queue, the state that the event loop and the search threads share, and the order:
clients take turns, and so do the requests of one client.

So a client that sends a book does not delay another that sends a line, and the client's own book
does not delay its own line. The sentences of one request keep their order.
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
    """The best hypothesis of a sentence whose search is under way."""

    number: int
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Answer:
    """The n-best list of a sentence whose search is done."""

    number: int
    hypotheses: list[Hypothesis]


class QueuedRequest:
    """The sentences of one request. The event loop makes and reads it, a worker fills it."""

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
        """The newest draft or answer of each watched sentence. The queue's lock guards it."""
        self.shown = 0.0
        self._loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()

    @property
    def next(self) -> Request:
        """The next sentence that a worker takes."""
        return self.requests[self.taken]

    @property
    def done(self) -> bool:
        return self.left == 0 or self.failure is not None

    def wake(self) -> None:
        """Wake the event loop, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.changed.set)


T = TypeVar("T")


class Turns(Generic[T]):
    """Items that wait, by client; clients take turns. Not thread-safe."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        """The waiting items of each client."""
        self._order: deque[str] = deque()
        """Clients that wait, the next one first."""
        self._away: set[str] = set()
        """Clients whose turn is under way: they join the order again after it."""

    def add(self, client: str, one: T) -> None:
        """Add an item after the client's others. A client without any joins the order last."""
        self._waiting.setdefault(client, deque()).append(one)
        self._join(client)

    def take(self, may: Callable[[T], bool] = lambda _: True) -> tuple[str, T] | None:
        """Begin the next turn: the client and its item. None if no waiting item satisfies ``may``;
        a client that is passed over keeps its place."""
        for client in self._order:
            for one in self._waiting[client]:
                if may(one):
                    self._away.add(client)
                    self._order.remove(client)
                    self.forget(client, one)
                    return client, one
        return None

    def end(self, client: str) -> None:
        """End a turn: the client joins the order last."""
        self._away.discard(client)
        if client in self._waiting:
            self._join(client)

    def forget(self, client: str, one: T) -> None:
        """Remove an item that is no longer needed."""
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
    """The requests with sentences left to take."""

    def take_sentence(
        self, may: Callable[[QueuedRequest], bool] = lambda _: True
    ) -> tuple[QueuedRequest, int] | None:
        """The next request and the number of its sentence, chosen as in ``take``."""
        found = self.take(may)
        if found is None:
            return None
        client, queued = found
        queued.taken += 1
        if queued.taken < len(queued.requests):
            self.add(client, queued)
        self.end(client)
        return queued, queued.taken - 1
