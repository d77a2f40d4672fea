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


class FairQueue:
    """Requests of clients that have sentences left to take. Not thread-safe."""

    def __init__(self) -> None:
        self._clients: dict[str, deque[QueuedRequest]] = {}
        self._turns: deque[str] = deque()

    def add(self, queued: QueuedRequest) -> None:
        """A new request joins; a new client's turn comes last."""
        if queued.client not in self._clients:
            self._clients[queued.client] = deque()
            self._turns.append(queued.client)
        self._clients[queued.client].append(queued)

    def take(
        self, may: Callable[[QueuedRequest], bool] = lambda _: True
    ) -> tuple[QueuedRequest, int] | None:
        """The next request and the number of its sentence, None when nothing waits that ``may`` be
        taken now: who may not keeps the turn."""
        passed: list[str] = []
        found = None
        while self._turns and found is None:
            client = self._turns.popleft()
            found = self._of_client(self._clients[client], may)
            if not self._clients[client]:
                del self._clients[client]
            elif found is None:
                passed.append(client)
            else:
                self._turns.append(client)
        self._turns.extendleft(reversed(passed))
        return found

    def _of_client(
        self, waiting: deque[QueuedRequest], may: Callable[[QueuedRequest], bool]
    ) -> tuple[QueuedRequest, int] | None:
        passed: list[QueuedRequest] = []
        found = None
        while waiting and found is None:
            queued = waiting.popleft()
            if not may(queued):
                passed.append(queued)
            elif (number := queued.take()) is not None:
                waiting.append(queued)
                found = queued, number
        waiting.extendleft(reversed(passed))
        return found

    def forget(self, queued: QueuedRequest) -> None:
        """Forget a request that nobody waits for any more."""
        waiting = self._clients.get(queued.client)
        if waiting is None or queued not in waiting:
            return
        waiting.remove(queued)
        if not waiting:
            del self._clients[queued.client]
            self._turns.remove(queued.client)
