"""Work beside the event loop, that clients take in turn.

Text is cut, decoded and written, and models are looked into, in threads: the event loop only hands
on. Each kind of work has one thread; whoever waits for it has one turn after another client's, and
long work is cut into turns of some milliseconds. What nobody waits for any more is not begun, and
what has begun can ask between its parts whether somebody still does.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from dragoman.serving.http.refusals import Refusal

T = TypeVar("T")

TURN_SECONDS = 0.01
"""Of work that comes in parts so much is done in one turn."""


class NobodyWaits(Exception):
    """Ends work whose result nobody would take."""


class GivenUp(threading.Event):
    """Set when nobody waits for some work any more."""

    def check(self) -> None:
        """Ends the work once it is set."""
        if self.is_set():
            raise NobodyWaits


class _Job(Generic[T]):
    """One turn of a client."""

    def __init__(self, client: str, work: Callable[[], T]) -> None:
        self.client = client
        self.work = work
        self.done: asyncio.Future[T] = asyncio.get_running_loop().create_future()


class FairExecutor:
    """A thread whose work clients take in turn. Lives in the event loop; ``close`` it after."""

    def __init__(
        self, name: str, *, of_client: int | None = None, of_all: int | None = None
    ) -> None:
        """``of_client`` and ``of_all``: how many turns one client, and all, may wait for."""
        self._name = name
        self._of_client, self._of_all = of_client, of_all
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._jobs: dict[str, deque[_Job[Any]]] = {}
        """Of each client that waits."""
        self._order: deque[str] = deque()
        """Clients that wait, the next first; the one whose turn it is not among them."""
        self._at_work: str | None = None
        """Whose turn it is."""
        self._places: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """How many turns are waited for, that under way included."""
        return self._places.total()

    @contextmanager
    def held(self, client: str, places: int) -> Iterator[None]:
        """So many places for work of many turns, by what it costs. Raises Refusal 429; a client
        that has none here gets as many as it takes."""
        self._check(client, places)
        self._places[client] += places
        try:
            yield
        finally:
            self._places[client] -= places
            if not self._places[client]:
                del self._places[client]

    async def do(self, client: str, work: Callable[[], T]) -> T:
        """Do ``work`` in the thread when the client's turn has come. Raises Refusal 429."""
        with self.held(client, 1):
            return await self._turn(client, work)

    async def _turn(self, client: str, work: Callable[[], T]) -> T:
        job = _Job(client, work)
        self._jobs.setdefault(client, deque()).append(job)
        self._join(client)
        self._begin()
        try:
            return await job.done
        finally:
            self._forget(job)

    async def do_while_awaited(self, client: str, work: Callable[[GivenUp], T]) -> T:
        """The same for long work: it is told when nobody waits for it any more, to end itself."""
        given_up = GivenUp()
        try:
            return await self.do(client, lambda: work(given_up))
        finally:
            given_up.set()

    async def each(self, client: str, work: Iterator[T]) -> AsyncGenerator[tuple[list[T], bool]]:
        """Do ``work`` part by part -> what each turn brought, and whether it was the last."""
        is_last = False
        while not is_last:
            found, is_last = await self.do(client, partial(_one_turn, work))
            yield found, is_last

    async def all(self, client: str, work: Iterator[T]) -> list[T]:
        """Do ``work`` part by part, others between."""
        return [one async for found, _ in self.each(client, work) for one in found]

    async def all_in(self, client: str, places: int, work: Iterator[T]) -> list[T]:
        """The same, in places that it has from its first turn to its last."""
        with self.held(client, places):
            return [one async for found, _ in self.turns(client, work) for one in found]

    async def do_in(self, client: str, work: Callable[[], T]) -> T:
        """As ``do``, in places that the client has (``held``)."""
        return await self._turn(client, work)

    async def turns(self, client: str, work: Iterator[T]) -> AsyncGenerator[tuple[list[T], bool]]:
        """As ``each``, in places that the client has (``held``)."""
        is_last = False
        while not is_last:
            found, is_last = await self._turn(client, partial(_one_turn, work))
            yield found, is_last

    def close(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _check(self, client: str, places: int) -> None:
        has = self._places[client]
        if self._of_client is not None and has and has + places > self._of_client:
            raise Refusal(
                "too_many_of_kind",
                f"You have {has} requests of this kind under way ({self._name}), "
                "the most that one client may have. Wait for one to finish.",
                retry_after=1,
                requests=has,
                kind=self._name,
            )
        if self._of_all is not None and self.waiting and self.waiting + places > self._of_all:
            raise Refusal(
                "others_wait",
                f"Others wait for the same already ({self._name}). Try again in a moment.",
                retry_after=2,
                kind=self._name,
            )

    def _join(self, client: str) -> None:
        """A client's turn comes last; who comes while another is at work is before that one."""
        if client in self._jobs and client != self._at_work and client not in self._order:
            self._order.append(client)

    def _forget(self, job: _Job[Any]) -> None:
        """A job that was done, or that nobody waits for any more."""
        jobs = self._jobs.get(job.client)
        if jobs is not None and job in jobs:
            jobs.remove(job)
            if not jobs:
                del self._jobs[job.client]
                if job.client in self._order:
                    self._order.remove(job.client)

    def _begin(self) -> None:
        """Give the next job its turn, if the thread is free."""
        if self._at_work is not None or not self._order:
            return
        client = self._at_work = self._order.popleft()
        job = self._jobs[client][0]
        self._forget(job)
        began = asyncio.get_running_loop().run_in_executor(self._thread, job.work)
        began.add_done_callback(partial(self._end, job))

    def _end(self, job: _Job[Any], ended: asyncio.Future[Any]) -> None:
        self._at_work = None
        self._join(job.client)
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
