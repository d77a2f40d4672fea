"""The queue in which the requests of all clients share the search of one run.

The event loop submits sentences, and one thread, or one for each processor core, searches for their
translations (``worker.py``). This module handles only token ids: it uses neither text nor HTTP.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.scheduler import Scheduler
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.queue.worker import Answer, Draft, QueuedRequest, Waiting, Worker


class SearchQueue:
    """The queue of one model. It takes the tokens of sentences, and returns an n-best list for
    each. Call ``start`` before use, and ``close`` after it."""

    def __init__(
        self,
        new_scheduler: Callable[[], Scheduler],
        *,
        name: str,
        eos: int,
        waiting: int,
        spare: int,
        workers: int = 1,
    ) -> None:
        """``waiting``: the largest number of sentences that may wait. ``workers``: the number of
        threads. Each of them has its own schedulers from ``new_scheduler``; the schedulers may
        share a model that has no state. ``spare``: the number of rows of each thread that are
        reserved for clients without a search in progress."""
        self.name = name
        self._eos = eos
        self._max_waiting = waiting
        self._waiting = Waiting(name)
        self._workers = [
            Worker(self._waiting, new_scheduler, f"search-{name}-{number}", spare)
            for number in range(workers)
        ]

    # ---- in the event loop

    def start(self) -> None:
        for worker in self._workers:
            worker.thread.start()

    async def close(self) -> None:
        """Refuse new requests, finish those that were accepted, and end the threads."""
        with self._waiting.changed:
            self._waiting.closing = True
            self._waiting.changed.notify_all()
        for worker in self._workers:
            if worker.thread.is_alive():
                await asyncio.to_thread(worker.thread.join)

    async def search(self, requests: Sequence[Request], client: str) -> list[list[Hypothesis]]:
        """Search, and return the n-best list of each request. If this call is cancelled, its
        searches end.

        Raises Refusal if the queue is full or closed, and ``SearchError`` for a request that cannot
        be satisfied.
        """
        if not requests:
            return []
        queued = self._enter(client, requests, watched=False)
        try:
            await queued.changed.wait()
        finally:
            self._leave(queued)
        if queued.failure is not None:
            raise queued.failure
        return [answer or [] for answer in queued.answers]

    async def watch(
        self, requests: Sequence[Request], client: str
    ) -> AsyncGenerator[list[Draft | Answer], None]:
        """Search like ``search``, but yield the drafts and the final n-best list of each sentence
        as soon as they exist.

        Each item has what is new since the item before. A slow reader gets only the newest draft of
        each sentence.
        """
        if not requests:
            return
        queued = self._enter(client, requests, watched=True)
        try:
            while True:
                await queued.changed.wait()
                queued.changed.clear()
                with self._waiting.changed:
                    news, queued.news = queued.news, {}
                    done = queued.done
                if news:
                    yield list(news.values())
                if queued.failure is not None:
                    raise queued.failure
                if done:
                    return
        finally:
            self._leave(queued)

    @property
    def waiting(self) -> int:
        """The number of sentences whose search has not begun."""
        return self._waiting.sentences

    @property
    def rows(self) -> int:
        """The number of hypotheses in all searches in progress."""
        return sum(worker.rows for worker in self._workers)

    @property
    def counters(self) -> Counter[str]:
        """The counters that ``COUNTED`` describes, summed over the workers."""
        return sum((worker.counters for worker in self._workers), Counter[str]())

    @property
    def alive(self) -> bool:
        """True while the threads of all workers are running."""
        return all(worker.thread.is_alive() for worker in self._workers)

    def _enter(self, client: str, requests: Sequence[Request], *, watched: bool) -> QueuedRequest:
        for request in requests:
            request.check(self._eos)
        if len(requests) > self._max_waiting:
            raise Refusal("too_many_sentences", sentences=len(requests), most=self._max_waiting)
        queued, waiting = QueuedRequest(client, requests, watched), self._waiting
        with waiting.changed:
            if waiting.closing:
                raise Refusal("shutting_down", retry_after=5)
            if waiting.sentences + len(requests) > self._max_waiting:
                raise Refusal(
                    "queue_full", retry_after=2, sentences=waiting.sentences, most=self._max_waiting
                )
            waiting.sentences += len(requests)
            waiting.costly_requests += any(queued.costly)
            waiting.fair.add(client, queued)
            waiting.changed.notify(min(len(requests), len(self._workers)))
        return queued

    def _leave(self, queued: QueuedRequest) -> None:
        """Remove a request that is finished, or that its client has given up, from the queue."""
        waiting = self._waiting
        with waiting.changed:
            queued.wanted = False
            if queued.left:
                waiting.departures += 1
                waiting.changed.notify_all()
            waiting.costly_requests -= any(queued.costly)
            waiting.sentences -= len(queued.requests) - queued.taken
            queued.taken = len(queued.requests)
            waiting.fair.forget(queued.client, queued)
