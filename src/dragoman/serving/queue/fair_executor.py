"""Turns of clients, and threads for work outside the event loop, in which clients take turns.

Splitting, decoding and writing texts, and inspecting models, would block the event loop, so they
are done in threads. Each kind of work has one thread. Clients take turns, and long work is divided
into turns of some milliseconds. If a client disconnects, its waiting work is never started, and
running work can check between its parts whether its client still waits.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from dragoman.engine.session import use_check
from dragoman.serving.http.limits import Places

T = TypeVar("T")

TURN_SECONDS = 0.01
"""The length of one turn, in seconds, for work that is divided into parts."""


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


class NobodyWaits(Exception):
    """Raised in the thread to end work whose client has disconnected."""


class _Job(NamedTuple, Generic[T]):
    """The work of one turn of a client."""

    work: Callable[[], T]
    done: asyncio.Future[T]
    """The result of the work. It is cancelled when the client disconnects."""

    def check(self) -> None:
        """End the work if nobody waits for it any more."""
        if self.done.done():
            raise NobodyWaits


class FairExecutor:
    """A thread in which clients take turns. Call its methods only in the event loop, and ``close``
    at the end."""

    def __init__(self, name: str, *, of_client: float = math.inf, of_all: float = math.inf) -> None:
        """``name``: the name of the thread, and of the kind of work in refusals. ``of_client`` and
        ``of_all``: the largest number of places that the work of one client, and of all clients
        together, may occupy."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._jobs = Turns[_Job[Any]]()
        self._at_work = False
        self.places = Places(name, of_client, of_all)

    async def do(self, client: str, work: Callable[[], T]) -> T:
        """Do ``work`` in the thread when it is the client's turn, and return its result. Raises
        Refusal 429 if too much work waits already."""
        with self.places.occupy(client, 1):
            return await self._turn(client, work)

    async def _turn(self, client: str, work: Callable[[], T]) -> T:
        job = _Job[T](work, asyncio.get_running_loop().create_future())
        self._jobs.add(client, job)
        self._begin()
        try:
            return await job.done
        finally:
            self._jobs.forget(client, job)

    async def turns(self, client: str, work: Iterator[T]) -> AsyncGenerator[tuple[list[T], bool]]:
        """Do ``work`` part by part, in turns with other clients. The client must already occupy
        places (``places.occupy``). Yields the results of each turn; with those of the last turn, it
        yields True."""
        is_last = False
        while not is_last:
            results, is_last = await self._turn(client, partial(_one_turn, work))
            yield results, is_last

    async def all(self, client: str, work: Iterator[T], places: int = 1) -> list[T]:
        """Return all results of ``work``, which occupies ``places`` from its first turn to its
        last. Raises Refusal 429."""
        with self.places.occupy(client, places):
            return [result async for results, _ in self.turns(client, work) for result in results]

    def close(self) -> None:
        """Cancel the waiting work, and start no other work."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        if self._at_work or (following := self._jobs.take()) is None:
            return
        self._at_work, (client, job) = True, following
        work = use_check(job.check)(job.work)
        began = asyncio.get_running_loop().run_in_executor(self._thread, work)
        began.add_done_callback(partial(self._end, client, job))

    def _end(self, client: str, job: _Job[Any], ended: asyncio.Future[Any]) -> None:
        self._at_work = False
        self._jobs.end(client)
        if ended.cancelled():
            job.done.cancel()
            return
        error = ended.exception()
        if not job.done.done():  # otherwise the client has gone
            if error is None:
                job.done.set_result(ended.result())
            else:
                job.done.set_exception(error)
        self._begin()


def _one_turn(work: Iterator[T]) -> tuple[list[T], bool]:
    """Do the parts of ``work`` that fit into one turn. Returns their results, and True if the work
    is finished."""
    end = time.perf_counter() + TURN_SECONDS
    results = []
    for result in work:
        results.append(result)
        if time.perf_counter() >= end:
            return results, False
    return results, True
