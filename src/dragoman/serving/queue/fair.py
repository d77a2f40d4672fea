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


Party = TypeVar("Party", bound=Waits)


class FairQueue(Generic[Party]):
    """Requests of clients that have sentences left to take. Not thread-safe."""

    def __init__(self) -> None:
        self._clients: dict[str, deque[Party]] = {}
        self._turns: deque[str] = deque()

    def add(self, party: Party) -> None:
        """A new request joins; a new client's turn comes last."""
        if party.client not in self._clients:
            self._clients[party.client] = deque()
            self._turns.append(party.client)
        self._clients[party.client].append(party)

    def take(self, may: Callable[[Party], bool] = lambda _: True) -> tuple[Party, int] | None:
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
        self, parties: deque[Party], may: Callable[[Party], bool]
    ) -> tuple[Party, int] | None:
        passed: list[Party] = []
        found = None
        while parties and found is None:
            party = parties.popleft()
            if not may(party):
                passed.append(party)
            elif (number := party.take()) is not None:
                parties.append(party)
                found = party, number
        parties.extendleft(reversed(passed))
        return found

    def forget(self, party: Party) -> None:
        """Forget a request that nobody waits for any more."""
        parties = self._clients.get(party.client)
        if parties is None or party not in parties:
            return
        parties.remove(party)
        if not parties:
            del self._clients[party.client]
            self._turns.remove(party.client)
