"""Work that takes long and is done one piece after another, every client in turn.

It has a thread of its own, so it keeps nothing else waiting. What a client no longer waits for is
not begun; what has begun is finished, and nothing of other clients runs beside it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dragoman.serving.fair import FairQueue
from dragoman.serving.refusals import slow_down

T = TypeVar("T")

MOST_EACH = 4
"""Pieces of work that one client may have waiting or under way."""
MOST = 64
"""Pieces of work of all clients."""


class _Piece:
    """One piece of work."""

    def __init__(self, client: str, work: Callable[[], Any], result: asyncio.Future[Any]) -> None:
        self.client = client
        self.work = work
        self.result = result
        self._is_taken = False

    def take(self) -> int | None:
        if self._is_taken or self.result.done():
            return None
        self._is_taken = True
        return 0


class Turns:
    """One thread that many clients share. Lives in the event loop."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._queue: FairQueue[_Piece] = FairQueue()
        self._is_busy = False
        self._count: Counter[str] = Counter()

    async def do(self, client: str, work: Callable[[], T]) -> T:
        """Do ``work`` when its turn comes. Cancelling this call gives the turn back.

        Raises Refusal 429 for a client who has too much waiting, or when all have.
        """
        if self._count[client] >= MOST_EACH or self._count.total() >= MOST:
            raise slow_down(
                "The server is computing what you or others asked for before. Try again in a "
                "moment.",
                2,
            )
        piece = _Piece(client, work, asyncio.get_running_loop().create_future())
        self._queue.add(piece)
        self._count[client] += 1
        try:
            self._begin()
            result: T = await piece.result
            return result
        finally:
            self._queue.forget(piece)
            self._count -= Counter([client])

    def close(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        if self._is_busy or (taken := self._queue.take()) is None:
            return
        piece, _ = taken
        self._is_busy = True
        begun = asyncio.get_running_loop().run_in_executor(self._thread, piece.work)
        begun.add_done_callback(lambda done: self._end(piece, done))

    def _end(self, piece: _Piece, done: asyncio.Future[Any]) -> None:
        self._is_busy = False
        error = done.exception()
        if not piece.result.done():
            if error is None:
                piece.result.set_result(done.result())
            else:
                piece.result.set_exception(error)
        self._begin()
