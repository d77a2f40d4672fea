"""Whose sentence is next: every client in turn, and every request of a client in turn.

So a client who sends a book does not keep another, who sends a line, waiting; nor does a client's
own book keep its own line waiting. Within a request the order is kept.
"""

from __future__ import annotations

from collections import deque
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

    def take(self) -> tuple[Party, int] | None:
        """The next request and the number of its sentence, None when nothing waits."""
        while self._turns:
            client = self._turns.popleft()
            parties = self._clients[client]
            party = parties.popleft()
            number = party.take()
            if number is not None:
                parties.append(party)
            if parties:
                self._turns.append(client)
            else:
                del self._clients[client]
            if number is not None:
                return party, number
        return None

    def forget(self, party: Party) -> None:
        """Forget a request that nobody waits for any more."""
        parties = self._clients.get(party.client)
        if parties is None or party not in parties:
            return
        parties.remove(party)
        if not parties:
            del self._clients[party.client]
            self._turns.remove(party.client)
