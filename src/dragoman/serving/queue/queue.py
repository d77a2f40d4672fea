"""One run's search, which the requests of all clients share.

The event loop hands in sentences; a thread (or one per core) drives a ``Scheduler`` and admits the
next sentence as soon as one finishes: fair between clients, bounded, and a request that nobody
waits for any more gives its place back at once. Nothing here knows text or HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.scheduler import Scheduler
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.queue.batches import COSTLY_SHARE, Batches, QueueBatch
from dragoman.serving.queue.cost import is_costly
from dragoman.serving.queue.fair import FairQueue

logger = logging.getLogger("dragoman")

DRAFT_SECONDS = 0.03
"""A growing sentence is shown so often at most: faster than eyes, slower than the search."""

REFILL_SHARE = 0.5
"""While many wait, new sentences enter, and are encoded, when so large a part of the rows is free;
less than where nobody waits (``search.offline``)."""

STEPS_AT_ONCE = 8
"""Of a native search while many wait, so that the event loop is interrupted less often."""


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


@dataclass
class QueueCounters:
    """What the queue has done since it began, for those who operate it."""

    steps: int = 0
    rows: int = 0
    """Hypotheses, summed over the steps: divided by ``steps``, the mean batch."""
    sentences: int = 0
    tokens: int = 0
    """Tokens of the translations given, end symbols counted."""
    given_up: int = 0
    """Sentences taken out because nobody waited for them any more."""
    failures: int = 0
    """Times that the model failed; what was under way then was answered with an error."""


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


class SearchQueue:
    """Sentences in, n-best lists out, for one model. ``start`` before use, ``close`` after."""

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
        """``waiting``: the most sentences that may wait. ``workers``: threads, each with a
        scheduler of its own from ``new_scheduler``; they may share one model that keeps nothing.
        ``spare``: rows of each that no client may hold beside all others: who has none under way
        finds them free.
        """
        self.name = name
        self.spare = spare
        self.new_scheduler = new_scheduler
        self._eos = eos
        self._most_waiting = waiting
        self._waiting = 0
        self._costly_requests = 0
        """Requests with costly searches, waiting or under way."""
        self._departures = 0
        self._closing = False
        self._fair: FairQueue[QueuedRequest] = FairQueue()
        self._changed = threading.Condition()
        self._workers = [_Worker(self, number) for number in range(workers)]

    # ---- in the event loop

    def start(self) -> None:
        for worker in self._workers:
            worker.thread.start()

    async def close(self) -> None:
        """Finish what was taken, take no more, and end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        await asyncio.to_thread(self._join)

    async def search(self, requests: Sequence[Request], client: str) -> list[list[Hypothesis]]:
        """The n best of each request. Cancelling this call gives its places back.

        Raises Refusal when the queue is full, ``SearchError`` for a request that cannot be met.
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
        """As ``search``, but sentence by sentence, each first as it grows: what is new each time.

        Only the newest draft of a sentence is given to one who reads slowly.
        """
        if not requests:
            return
        queued = self._enter(client, requests, watched=True)
        try:
            while True:
                await queued.changed.wait()
                queued.changed.clear()
                with self._changed:
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
        """Sentences that wait for a place."""
        return self._waiting

    @property
    def rows(self) -> int:
        """Hypotheses under way now."""
        return sum(worker.rows for worker in self._workers)

    @property
    def counters(self) -> QueueCounters:
        """The sum over the workers."""
        total = QueueCounters()
        for worker in self._workers:
            for name, value in vars(worker.counters).items():
                setattr(total, name, getattr(total, name) + value)
        return total

    @property
    def alive(self) -> bool:
        """Whether all its threads run."""
        return all(worker.thread.is_alive() for worker in self._workers)

    def _enter(self, client: str, requests: Sequence[Request], *, watched: bool) -> QueuedRequest:
        for request in requests:
            request.check(self._eos)
        if len(requests) > self._most_waiting:
            raise Refusal(
                "too_many_sentences",
                f"The request has {len(requests):,} sentences; this server takes "
                f"{self._most_waiting:,} at once. Send it in parts.",
                sentences=len(requests),
                most=self._most_waiting,
            )
        queued = QueuedRequest(client, requests, watched)
        with self._changed:
            if self._closing:
                raise Refusal(
                    "shutting_down",
                    "The server is shutting down. Try again in a moment.",
                    retry_after=5,
                )
            if self._waiting + len(requests) > self._most_waiting:
                raise Refusal(
                    "queue_full",
                    f"{self._waiting:,} sentences wait for this translator already, and "
                    f"{self._most_waiting:,} may. Try again in a moment.",
                    retry_after=2,
                    sentences=self._waiting,
                    most=self._most_waiting,
                )
            self._waiting += len(requests)
            self._costly_requests += queued.has_costly
            self._fair.add(queued)
            self._changed.notify(min(len(requests), len(self._workers)))
        return queued

    def _leave(self, queued: QueuedRequest) -> None:
        """Give back the places of a request that is done or no longer wanted."""
        with self._changed:
            queued.wanted = False
            if queued.left:
                self._departures += 1
                self._changed.notify_all()
            self._costly_requests -= queued.has_costly
            self._waiting -= len(queued.requests) - queued.taken
            queued.taken = len(queued.requests)
            self._fair.forget(queued)

    def _join(self) -> None:
        for worker in self._workers:
            if worker.thread.is_alive():
                worker.thread.join()


class _Worker:
    """A thread with two batches: takes sentences from the queue and answers them."""

    def __init__(self, queue: SearchQueue, number: int) -> None:
        self.counters = QueueCounters()
        self.rows = 0
        self.thread = threading.Thread(
            target=self._work, name=f"search-{queue.name}-{number}", daemon=True
        )
        self._queue = queue
        self._enough = 0
        """Free rows at which new sentences enter while many wait."""
        self._gathers = False
        self._of_one = self._of_costly = 0
        """Rows that one client, and costly searches of all clients, may hold."""
        self._held: Counter[str] = Counter()
        """Rows under way, by client."""
        self._costly = 0
        """Rows under way of costly searches."""
        self._departures = 0

    def _work(self) -> None:
        batches: Batches[QueuedRequest] = Batches(self._queue.new_scheduler)
        rows = batches.little.scheduler.free_rows - self._queue.spare
        self._enough, self._of_one = int(rows * REFILL_SHARE), rows
        self._of_costly = max(1, int(rows * COSTLY_SHARE))
        while self._fill(batches):
            batch = batches.next()
            try:
                if self._gathers and batch is batches.little:
                    done = batch.advance(STEPS_AT_ONCE, self._enough)
                else:
                    done = batch.advance(1, 1)
                self.rows = batches.rows
                self._count(batch, done)
                self._tell(batch, done)
            except Exception as error:  # whatever a model fails with
                logger.exception("the search of %s failed and begins anew", self._queue.name)
                self._fail(batch, error)
                self.rows = batches.rows

    def _fill(self, batches: Batches[QueuedRequest]) -> bool:
        """Wait for work, drop what nobody wants, admit what fits -> False when all is over."""
        queue = self._queue
        taken: list[tuple[QueuedRequest, int]] = []
        with queue._changed:
            while not (batches.running or queue._waiting):
                if queue._closing:
                    return False
                queue._changed.wait()
            departures = queue._departures
            rows = batches.little.scheduler.free_rows
            self._gathers = queue._waiting >= self._enough
            joins = not self._gathers or rows >= self._enough + queue.spare
            while (rows > 0 or queue._costly_requests) and (
                following := queue._fair.take(partial(self._may, joins, rows))
            ):
                queued, number = following
                queue._waiting -= 1
                request = queued.requests[number]
                rows -= 0 if is_costly(request) else request.rows
                self._hold(queued, number, 1)
                taken.append(following)
        if departures != self._departures:
            self._departures = departures
            for batch in (batches.little, batches.costly):
                self._drop_unwanted(batch)
        for queued, number in taken:
            batches.submit(queued, number, is_costly=is_costly(queued.requests[number]))
        return True

    def _may(self, joins: bool, rows: int, queued: QueuedRequest) -> bool:
        """Whether the next sentence of a request may enter now. ``joins``: whether enough rows are
        free for those who have some under way already; while many wait, these are first left to
        gather. ``rows``: those free for searches that are not costly."""
        request = queued.next
        if request is None:  # it has none: it is forgotten
            return True
        if is_costly(request):
            if self._costly and self._costly + request.rows > self._of_costly:
                return False
        elif rows <= 0:
            return False
        held = self._held[queued.client]
        return not held or (joins and held + request.rows <= self._of_one)

    def _hold(self, queued: QueuedRequest, number: int, sign: int) -> None:
        """Count the rows of a sentence that begins (1) or ends (-1)."""
        request = queued.requests[number]
        self._held[queued.client] += sign * request.rows
        if not self._held[queued.client]:
            del self._held[queued.client]
        if is_costly(request):
            self._costly += sign * request.rows

    def _count(
        self, batch: QueueBatch[QueuedRequest], done: list[tuple[int, list[Hypothesis]]]
    ) -> None:
        counters = self.counters
        counters.steps += 1
        counters.rows += batch.scheduler.rows
        counters.sentences += len(done)
        for _, hypotheses in done:
            counters.tokens += len(hypotheses[0].token_log_probabilities) if hypotheses else 0

    def _tell(
        self, batch: QueueBatch[QueuedRequest], done: list[tuple[int, list[Hypothesis]]]
    ) -> None:
        if done:
            with self._queue._changed:
                finished = [self._settle(batch, ticket, found) for ticket, found in done]
            for queued in dict.fromkeys(finished):
                if queued.done or queued.watched:
                    queued.wake()
        if batch.watched:
            self._show_drafts(batch)

    def _settle(
        self, batch: QueueBatch[QueuedRequest], ticket: int, hypotheses: list[Hypothesis]
    ) -> QueuedRequest:
        queued, number = batch.running.pop(ticket)
        self._hold(queued, number, -1)
        queued.answers[number] = hypotheses
        queued.left -= 1
        if queued.watched:
            batch.watched.discard(ticket)
            queued.news[number] = Answer(number, hypotheses)
        return queued

    def _show_drafts(self, batch: QueueBatch[QueuedRequest]) -> None:
        now = time.monotonic()
        due = [t for t in batch.watched if now - batch.running[t][0].shown >= DRAFT_SECONDS]
        shown = []
        for ticket in due:
            queued, number = batch.running[ticket]
            draft = batch.scheduler.so_far(ticket)
            if draft is not None and draft.tokens:
                queued.shown = now
                shown.append((queued, Draft(number, draft)))
        with self._queue._changed:
            for queued, news in shown:
                queued.news[news.number] = news
        for queued in dict.fromkeys(queued for queued, _ in shown):
            queued.wake()

    def _drop_unwanted(self, batch: QueueBatch[QueuedRequest]) -> None:
        for ticket in [t for t, (queued, _) in batch.running.items() if not queued.wanted]:
            batch.scheduler.cancel(ticket)
            self._hold(*batch.running.pop(ticket), -1)
            batch.watched.discard(ticket)
            self.counters.given_up += 1

    def _fail(self, batch: QueueBatch[QueuedRequest], error: Exception) -> None:
        """Answer all that is under way in a batch with an error."""
        for queued, number in batch.running.values():
            self._hold(queued, number, -1)
        failed = dict.fromkeys(queued for queued, _ in batch.running.values())
        batch.clear()
        self.counters.failures += 1
        for queued in failed:
            queued.failure = Refusal(
                "failed", "The model failed at this request; the server's log says why."
            )
            queued.failure.__cause__ = error
            queued.wake()
