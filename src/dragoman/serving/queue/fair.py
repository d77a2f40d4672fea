"""Whose sentence is next: every client in turn, and every request of a client in turn.

So a client who sends a book does not keep another, who sends a line, waiting; nor does a client's
own book keep its own line waiting. Within a request the order is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Waits(Protocol):
    """A request of a client: some sentences, taken one after another."""

    client: str

    def take(self) -> int | None:
        """The number of the next sentence, None when all are taken or nobody wants them."""


Queued = TypeVar("Queued", bound=Waits)


class FairQueue(Generic[Queued]):
    """Requests of clients that have sentences left to take. Not thread-safe."""

    def __init__(self) -> None:
        self._clients: dict[str, deque[Queued]] = {}
        self._turns: deque[str] = deque()

    def add(self, queued: Queued) -> None:
        """A new request joins; a new client's turn comes last."""
        if queued.client not in self._clients:
            self._clients[queued.client] = deque()
            self._turns.append(queued.client)
        self._clients[queued.client].append(queued)

    def take(self, may: Callable[[Queued], bool] = lambda _: True) -> tuple[Queued, int] | None:
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
        self, waiting: deque[Queued], may: Callable[[Queued], bool]
    ) -> tuple[Queued, int] | None:
        passed: list[Queued] = []
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

    def forget(self, queued: Queued) -> None:
        """Forget a request that nobody waits for any more."""
        waiting = self._clients.get(queued.client)
        if waiting is None or queued not in waiting:
            return
        waiting.remove(queued)
        if not waiting:
            del self._clients[queued.client]
            self._turns.remove(queued.client)
