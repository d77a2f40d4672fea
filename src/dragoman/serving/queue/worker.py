"""The threads of a queue, and the requests that they share with the event loop. The threads take
waiting sentences, search for their translations with a ``Scheduler``, and store the answers.

As soon as the search of a sentence finishes, a thread starts the next one. Clients take turns, and
so do the requests of one client: a client that sends a book delays neither the line of another
client nor a line that it sends itself. The sentences of one request keep their order. Each client
may occupy only a limited number of rows (one row is one hypothesis in a batch). If a client gives
up a request, the rows of its sentences are freed at once.

A step of a batch takes as long as all of its rows together, and when a search joins or leaves a
batch, all rows are copied. So costly searches (``COSTLY``) have a separate batch. While both
batches have work, they share the time of the thread: costly searches get a fixed share of it,
however large they are, so that small searches are slowed down only by this share.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request, rows_of
from dragoman.search.scheduler import Scheduler
from dragoman.serving.http.limits import COSTLY
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.queue.fair_executor import Turns

COSTLY_SHARE = 0.25
"""The largest share of the rows that costly searches may occupy together (a single one may occupy
more), and their share of the time while other searches are in progress."""


@dataclass(frozen=True)
class Draft:
    """The best hypothesis so far of a sentence whose search is in progress."""

    number: int
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Answer:
    """The n-best list of a sentence whose search has finished."""

    number: int
    hypotheses: list[Hypothesis]


class QueuedRequest:
    """The sentences of one request, and their answers. The event loop makes this object and reads
    the answers, which the workers fill in."""

    def __init__(self, client: str, requests: Sequence[Request], watched: bool) -> None:
        self.client = client
        self.requests = requests
        self.answers: list[list[Hypothesis] | None] = [None] * len(requests)
        self.costly = [rows_of(request.settings) * request.limit >= COSTLY for request in requests]
        self.left = len(requests)
        self.taken = 0
        self.wanted = True
        self.failure: Exception | None = None
        self.watched = watched
        self.news: dict[int, Draft | Answer] = {}
        """The newest draft or answer of each watched sentence. Access it only while holding the
        lock of the queue."""
        self.shown = 0.0
        self._loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()

    @property
    def done(self) -> bool:
        return self.left == 0 or self.failure is not None

    def wake(self) -> None:
        """Tell the event loop that something has changed. May be called in any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.changed.set)


class FairQueue(Turns[QueuedRequest]):
    """The requests with sentences whose search has not begun."""

    def take_sentence(
        self, may: Callable[[QueuedRequest], bool] = lambda _: True
    ) -> tuple[QueuedRequest, int] | None:
        """Take the next sentence: return its request and its number in this request. The request is
        chosen as in ``take``."""
        turn = self.take(may)
        if turn is None:
            return None
        client, queued = turn
        queued.taken += 1
        if queued.taken < len(queued.requests):
            self.add(client, queued)
        self.end(client)
        return queued, queued.taken - 1


class QueueBatch:
    """A batch of searches, which take their steps together."""

    def __init__(
        self, new_scheduler: Callable[[], Scheduler], share: float, clock: Callable[[], float]
    ) -> None:
        """``share``: the share of the time that this batch gets while the other batch has work,
        too."""
        self.running: dict[int, tuple[QueuedRequest, int]] = {}
        """The searches in progress: the ticket of the scheduler -> the request and the number of
        the sentence in it."""
        self.spent = 0.0
        """The time of its steps in seconds, divided by ``share``. The batch in which this is less
        takes the next step."""
        self._share = share
        self._clock = clock
        self._new_scheduler = new_scheduler
        self.scheduler = new_scheduler()

    def advance(self, steps: int, free: int) -> list[tuple[int, list[Hypothesis]]]:
        """Call ``Scheduler.advance``, and add the time that it takes to ``spent``."""
        began = self._clock()
        done = self.scheduler.advance(steps, free)
        self.spent += (self._clock() - began) / self._share
        return done

    def clear(self) -> None:
        """Remove all searches, after a failure of the model."""
        self.running.clear()
        self.scheduler = self._new_scheduler()


class Batches:
    """The two batches of a thread: one for costly searches, and one for all others."""

    def __init__(
        self,
        new_scheduler: Callable[[], Scheduler],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.little = QueueBatch(new_scheduler, 1 - COSTLY_SHARE, clock)
        self.costly = QueueBatch(new_scheduler, COSTLY_SHARE, clock)

    def submit(self, queued: QueuedRequest, number: int) -> None:
        """Begin the search for sentence ``number`` of a request, in the batch where it belongs."""
        batch, other = self.little, self.costly
        if queued.costly[number]:
            batch, other = other, batch
        if not batch.running and other.running:
            # A batch does not make up for time that it left unused.
            batch.spent = max(batch.spent, other.spent)
        ticket = batch.scheduler.submit(queued.requests[number], is_checked=True)
        batch.running[ticket] = queued, number

    def next(self) -> QueueBatch:
        """Choose the batch that takes the next step."""
        if not self.costly.running:
            return self.little
        if not self.little.running:
            return self.costly
        return min(self.little, self.costly, key=lambda batch: batch.spent)


logger = logging.getLogger("dragoman")

DRAFT_SECONDS = 0.03
"""The shortest time in seconds between two drafts of a sentence. It is shorter than readers notice,
and longer than a step of the search."""

REFILL_SHARE = 0.5
"""While many sentences wait, new ones enter the batch only when this share of the rows is free, so
that they are encoded together. The share is smaller than in ``search.offline``, where no client
waits for an answer."""

STEPS_AT_ONCE = 8
"""The number of steps that a native search takes at a time while many sentences wait, so that it
interrupts the event loop less often."""


COUNTED = {
    "sentences": "Sentences translated.",
    "tokens": "Tokens of translations given.",
    "steps": "Steps of the search.",
    "step_rows": "Hypotheses, summed over the steps: over steps, the mean batch.",
    "given_up_sentences": "Sentences under way whose client went away.",
    "model_failures": "Failures of a model.",
}
"""The names and meanings of the counters, which operators see as metrics. They count from the start
of the server. End symbols count as tokens. After a failure of the model, the searches in progress
are answered with an error."""


class Waiting:
    """The waiting requests, which the event loop and all threads share. Use them only while holding
    the lock of ``changed``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = threading.Condition()
        self.fair = FairQueue()
        self.sentences = 0
        self.costly_requests = 0
        """The number of requests with costly searches, waiting or in progress."""
        self.departures = 0
        """The number of requests that were given up before all of their sentences had an answer."""
        self.closing = False


class Worker:
    """A thread with two batches, which takes sentences from the queue and answers them."""

    def __init__(
        self, waiting: Waiting, new_scheduler: Callable[[], Scheduler], name: str, spare: int
    ) -> None:
        """``name``: the name of the thread. ``spare``: as in ``SearchQueue``."""
        self.counters = Counter(dict.fromkeys(COUNTED, 0))
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._waiting = waiting
        self._batches = Batches(new_scheduler)
        self._spare = spare
        rows = self._batches.little.scheduler.free_rows - spare
        self._enough = int(rows * REFILL_SHARE)
        """The number of free rows from which new sentences may enter while many wait."""
        self._gathers = False
        self._of_one, self._of_costly = rows, int(rows * COSTLY_SHARE)
        """The largest numbers of rows that one client, and all costly searches together, may
        occupy."""
        self._held: Counter[str] = Counter()
        """The number of rows that the searches of each client occupy."""
        self._costly = 0
        """The number of rows that costly searches occupy."""
        self._departures = 0

    @property
    def rows(self) -> int:
        """The number of hypotheses in the searches in progress."""
        return self._batches.little.scheduler.rows + self._batches.costly.scheduler.rows

    def _work(self) -> None:
        batches = self._batches
        while self._fill():
            batch = batches.next()
            try:
                if self._gathers and batch is batches.little:
                    done = batch.advance(STEPS_AT_ONCE, self._enough)
                else:
                    done = batch.advance(1, 1)
                self.counters["steps"] += 1
                self.counters["step_rows"] += batch.scheduler.rows
                self._tell(batch, done)
            except Exception as error:  # a model may fail with any exception
                logger.exception("the search of %s failed and starts again", self._waiting.name)
                self._fail(batch, error)

    def _fill(self) -> bool:
        """Wait for work, drop searches that were given up, and begin as many searches as fit.
        Returns False when the queue is closed and all work is done."""
        waiting, batches = self._waiting, self._batches
        taken: list[tuple[QueuedRequest, int]] = []
        with waiting.changed:
            while not (batches.little.running or batches.costly.running or waiting.sentences):
                if waiting.closing:
                    return False
                waiting.changed.wait()
            departures = waiting.departures
            rows = batches.little.scheduler.free_rows
            self._gathers = waiting.sentences >= self._enough
            joins = not self._gathers or rows >= self._enough + self._spare
            while (rows > 0 or waiting.costly_requests) and (
                following := waiting.fair.take_sentence(partial(self._may, joins, rows))
            ):
                queued, number = following
                waiting.sentences -= 1
                rows -= 0 if queued.costly[number] else rows_of(queued.requests[number].settings)
                self._hold(queued, number, 1)
                taken.append(following)
        if departures != self._departures:
            self._departures = departures
            for batch in (batches.little, batches.costly):
                self._drop_unwanted(batch)
        for queued, number in taken:
            batches.submit(queued, number)
        return True

    def _may(self, joins: bool, rows: int, queued: QueuedRequest) -> bool:
        """Return True if the search for the next sentence of a request may begin now. ``joins``:
        True if clients that already occupy rows may get more; while many sentences wait, this is
        False until several rows are free. ``rows``: the number of free rows for searches that are
        not costly."""
        new = rows_of(queued.requests[queued.taken].settings)
        if queued.costly[queued.taken]:
            if self._costly and self._costly + new > self._of_costly:
                return False
        elif rows <= 0:
            return False
        held = self._held[queued.client]
        return not held or (joins and held + new <= self._of_one)

    def _hold(self, queued: QueuedRequest, number: int, sign: int) -> None:
        """Count the rows of a sentence whose search begins (``sign`` is 1) or ends (-1)."""
        rows = sign * rows_of(queued.requests[number].settings)
        self._held[queued.client] += rows
        if not self._held[queued.client]:
            del self._held[queued.client]
        if queued.costly[number]:
            self._costly += rows

    def _tell(self, batch: QueueBatch, done: list[tuple[int, list[Hypothesis]]]) -> None:
        if done:
            finished: dict[QueuedRequest, None] = {}
            with self._waiting.changed:
                for ticket, best in done:
                    queued, number = batch.running.pop(ticket)
                    self._hold(queued, number, -1)
                    queued.answers[number] = best
                    queued.left -= 1
                    self.counters["sentences"] += 1
                    self.counters["tokens"] += len(best[0].token_log_probabilities) if best else 0
                    if queued.watched:
                        queued.news[number] = Answer(number, best)
                    finished[queued] = None
            for queued in finished:
                if queued.done or queued.watched:
                    queued.wake()
        self._show_drafts(batch)

    def _show_drafts(self, batch: QueueBatch) -> None:
        now = time.monotonic()
        due = {
            ticket: searched
            for ticket, searched in batch.running.items()
            if searched[0].watched and now - searched[0].shown >= DRAFT_SECONDS
        }
        if not due:
            return
        shown = []
        for ticket, (queued, number) in due.items():
            draft = batch.scheduler.so_far(ticket)
            if draft is not None and draft.tokens:
                queued.shown = now
                shown.append((queued, Draft(number, draft)))
        with self._waiting.changed:
            for queued, news in shown:
                queued.news[news.number] = news
        for queued in dict.fromkeys(queued for queued, _ in shown):
            queued.wake()

    def _drop_unwanted(self, batch: QueueBatch) -> None:
        for ticket in [t for t, (queued, _) in batch.running.items() if not queued.wanted]:
            batch.scheduler.cancel(ticket)
            self._hold(*batch.running.pop(ticket), -1)
            self.counters["given_up_sentences"] += 1

    def _fail(self, batch: QueueBatch, error: Exception) -> None:
        """Answer all searches in progress in a batch with an error."""
        for queued, number in batch.running.values():
            self._hold(queued, number, -1)
        failed = dict.fromkeys(queued for queued, _ in batch.running.values())
        batch.clear()
        self.counters["model_failures"] += 1
        for queued in failed:
            queued.failure = Refusal(
                "failed",
                "The model failed to answer this request. See the server's log.",
            )
            queued.failure.__cause__ = error
            queued.wake()
