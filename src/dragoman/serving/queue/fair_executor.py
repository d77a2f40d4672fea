"""Work beside the event loop, that clients take in turn.

Text is cut, decoded and written, and models are looked into, in threads: the event loop only hands
on. Each kind of work has one thread; whoever waits for it has one turn after another client's, and
long work is cut into turns of some milliseconds. What nobody waits for any more is not begun, and
what has begun can ask between its parts whether somebody still does.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar

from dragoman.insight.session import ended_by
from dragoman.serving.http.limits import Places
from dragoman.serving.queue.queued_request import Turns

T = TypeVar("T")

TURN_SECONDS = 0.01
"""Of work that comes in parts so much is done in one turn."""


class NobodyWaits(Exception):
    """Ends work whose result nobody would take."""


class _Job(Generic[T]):
    """One turn of a client."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.work = work
        self.done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.given_up = False
        """Whether nobody waits for it any more."""

    def run(self) -> T:
        """Do it, in the thread; it ends before its next part (``begin_part``) once it is given
        up."""
        with ended_by(self._check):
            return self.work()

    def _check(self) -> None:
        if self.given_up:
            raise NobodyWaits


class FairExecutor:
    """A thread whose work clients take in turn. Lives in the event loop; ``close`` it after."""

    def __init__(self, name: str, *, of_client: float = math.inf, of_all: float = math.inf) -> None:
        """``of_client`` and ``of_all``: how many turns one client, and all, may wait for."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._jobs = Turns[_Job[Any]]()
        self._at_work = False
        self.places = Places(name, of_client, of_all)
        self.held = self.places.held
        """So many places for work of many turns, by what it costs."""

    async def do(self, client: str, work: Callable[[], T]) -> T:
        """Do ``work`` in the thread when the client's turn has come. Raises Refusal 429."""
        with self.held(client, 1):
            return await self._turn(client, work)

    async def _turn(self, client: str, work: Callable[[], T]) -> T:
        job = _Job(work)
        self._jobs.add(client, job)
        self._begin()
        try:
            return await job.done
        finally:
            job.given_up = True
            self._jobs.forget(client, job)

    async def turns(self, client: str, work: Iterator[T]) -> AsyncGenerator[tuple[list[T], bool]]:
        """Do ``work`` part by part, in places that the client has (``held``), others between: what
        each turn brought, and whether it was the last."""
        is_last = False
        while not is_last:
            found, is_last = await self._turn(client, partial(_one_turn, work))
            yield found, is_last

    async def all(self, client: str, work: Iterator[T], places: int = 1) -> list[T]:
        """All that ``work`` brings, in places that it has from its first turn to its last."""
        with self.held(client, places):
            return [one async for found, _ in self.turns(client, work) for one in found]

    def close(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        """Give the next job its turn, if the thread is free."""
        if self._at_work or (following := self._jobs.take()) is None:
            return
        self._at_work, (client, job) = True, following
        began = asyncio.get_running_loop().run_in_executor(self._thread, job.run)
        began.add_done_callback(partial(self._end, client, job))

    def _end(self, client: str, job: _Job[Any], ended: asyncio.Future[Any]) -> None:
        self._at_work = False
        self._jobs.end(client)
        if ended.cancelled():
            job.done.cancel()
            return
        error = ended.exception()
        if not job.done.done():  # else nobody waits for it any more
            if error is None:
                job.done.set_result(ended.result())
            else:
                job.done.set_exception(error)
        self._begin()


def _one_turn(work: Iterator[T]) -> tuple[list[T], bool]:
    """What a turn brings, and whether it was the last."""
    end = time.perf_counter() + TURN_SECONDS
    found = []
    for one in work:
        found.append(one)
        if time.perf_counter() >= end:
            return found, False
    return found, True
