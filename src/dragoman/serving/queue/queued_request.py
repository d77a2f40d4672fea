"""The requests in a queue, which the event loop and the search threads share, and their order:
clients take turns, and so do the requests of one client.

So if a client sends a book, it delays neither the line of another client nor a line that it sends
itself. The sentences of one request keep their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request, rows_of
from dragoman.serving.http.limits import COSTLY


@dataclass(frozen=True)
class Draft:
    """The best hypothesis so far of a sentence whose search is in progress."""

    number: int
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Answer:
    """The n-best list of a sentence whose search has finished."""

    number: int
    hypotheses: list[Hypothesis]


class QueuedRequest:
    """The sentences of one request, and their answers. The event loop makes this object and reads
    the answers, which the workers fill in."""

    def __init__(self, client: str, requests: Sequence[Request], watched: bool) -> None:
        self.client = client
        self.requests = requests
        self.answers: list[list[Hypothesis] | None] = [None] * len(requests)
        self.costly = [rows_of(request.settings) * request.limit >= COSTLY for request in requests]
        self.left = len(requests)
        self.taken = 0
        self.wanted = True
        self.failure: Exception | None = None
        self.watched = watched
        self.news: dict[int, Draft | Answer] = {}
        """The newest draft or answer of each watched sentence. Access it only while holding the
        lock of the queue."""
        self.shown = 0.0
        self._loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()

    @property
    def done(self) -> bool:
        return self.left == 0 or self.failure is not None

    def wake(self) -> None:
        """Tell the event loop that something has changed. May be called in any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.changed.set)


T = TypeVar("T")


class Turns(Generic[T]):
    """The items of each client that wait for a turn. Clients take turns. Not thread-safe."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        """The waiting items of each client."""
        self._order: deque[str] = deque()
        """The clients that wait for a turn. The first one is next."""
        self._away: set[str] = set()
        """The clients whose turn is in progress. They join the order again after it."""

    def add(self, client: str, item: T) -> None:
        """Add an item after the other items of its client. A client that had no items joins the
        order at its end."""
        self._waiting.setdefault(client, deque()).append(item)
        if client not in self._away and client not in self._order:
            self._order.append(client)

    def take(self, may: Callable[[T], bool] = lambda _: True) -> tuple[str, T] | None:
        """Begin the next turn, and return the client and its item. Items for which ``may`` returns
        False are skipped, and their clients keep their places in the order. Returns None if no
        waiting item is left."""
        for client in self._order:
            for item in self._waiting[client]:
                if may(item):
                    self._away.add(client)
                    self._order.remove(client)
                    self.forget(client, item)
                    return client, item
        return None

    def end(self, client: str) -> None:
        """End the turn of a client. If the client has more items, it goes to the back of the
        line."""
        self._away.discard(client)
        if client in self._waiting:
            self._order.append(client)

    def forget(self, client: str, item: T) -> None:
        """Remove an item that is no longer needed."""
        waiting = self._waiting.get(client)
        if waiting is not None and item in waiting:
            waiting.remove(item)
            if not waiting:
                del self._waiting[client]
                if client in self._order:
                    self._order.remove(client)


class FairQueue(Turns[QueuedRequest]):
    """The requests with sentences whose search has not begun."""

    def take_sentence(
        self, may: Callable[[QueuedRequest], bool] = lambda _: True
    ) -> tuple[QueuedRequest, int] | None:
        """Take the next sentence: return its request and its number in this request. The request is
        chosen as in ``take``."""
        turn = self.take(may)
        if turn is None:
            return None
        client, queued = turn
        queued.taken += 1
        if queued.taken < len(queued.requests):
            self.add(client, queued)
        self.end(client)
        return queued, queued.taken - 1
