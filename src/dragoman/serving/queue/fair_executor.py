"""Threads for work outside the event loop, in which clients take turns.

Texts are cut, decoded and written, and models are looked into, in threads: the event loop only
passes work on. Each kind of work has one thread; clients take turns, and long work is cut into
turns of some milliseconds. Work of a client that has gone is not begun, and work under way can
check between its parts whether its client still waits.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from dragoman.engine.session import ended_by
from dragoman.serving.http.limits import Places
from dragoman.serving.queue.queued_request import Turns

T = TypeVar("T")

TURN_SECONDS = 0.01
"""The length of one turn of work that comes in parts."""


class NobodyWaits(Exception):
    """Ends work whose client has gone."""


class _Job(NamedTuple, Generic[T]):
    """The work of one turn of a client."""

    work: Callable[[], T]
    done: asyncio.Future[T]
    """Its result; cancelled once the client has gone."""

    def run(self) -> T:
        """Do the work, in the thread; it ends before its next part (``begin_part``) once nobody
        waits for it."""
        with ended_by(self._check):
            return self.work()

    def _check(self) -> None:
        if self.done.done():
            raise NobodyWaits


class FairExecutor:
    """A thread in which clients take turns. It belongs to the event loop; ``close`` it last."""

    def __init__(self, name: str, *, of_client: float = math.inf, of_all: float = math.inf) -> None:
        """``of_client`` and ``of_all``: the largest number of turns that one client may wait for,
        and that all clients together may wait for."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._jobs = Turns[_Job[Any]]()
        self._at_work = False
        self.places = Places(name, of_client, of_all)
        self.held = self.places.held
        """Holds a number of places, by the cost of the work, for work of several turns."""

    async def do(self, client: str, work: Callable[[], T]) -> T:
        """Do ``work`` in the thread in the client's turn. Raises Refusal 429."""
        with self.held(client, 1):
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
        """Do ``work`` part by part, in places that the client holds (``held``), between the turns
        of others. Yields the results of each turn, and True with the last."""
        is_last = False
        while not is_last:
            found, is_last = await self._turn(client, partial(_one_turn, work))
            yield found, is_last

    async def all(self, client: str, work: Iterator[T], places: int = 1) -> list[T]:
        """Return all results of ``work``, which takes ``places`` from its first turn to its
        last."""
        with self.held(client, places):
            return [one async for found, _ in self.turns(client, work) for one in found]

    def close(self) -> None:
        """Cancel the waiting work, and begin no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
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
        if not job.done.done():  # otherwise the client has gone
            if error is None:
                job.done.set_result(ended.result())
            else:
                job.done.set_exception(error)
        self._begin()


def _one_turn(work: Iterator[T]) -> tuple[list[T], bool]:
    """Work for one turn; returns its results, and True if the work is finished."""
    end = time.perf_counter() + TURN_SECONDS
    found = []
    for one in work:
        found.append(one)
        if time.perf_counter() >= end:
            return found, False
    return found, True
