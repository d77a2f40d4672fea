"""The threads of a search: they take waiting sentences, drive a ``Scheduler``, and answer.

A thread admits the next sentence as soon as one finishes: fairly between clients, with a limit, and
a request that is given up frees its place at once.

Each step of a batch waits for all of its rows, and all of them move when a search joins or leaves.
So costly searches (``cost.py``) have a batch of their own. While both batches have work they share
the thread's time: costly searches slow small ones down by a fixed share of that time, however large
they are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.scheduler import Scheduler
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.queue.queued_request import Answer, Draft, FairQueue, QueuedRequest

COSTLY_SHARE = 0.25
"""The largest share of the rows that costly searches may hold (one alone may hold more), and their
share of the time while other searches are under way."""


class QueueBatch:
    """Searches that take their steps together."""

    def __init__(
        self, new_scheduler: Callable[[], Scheduler], share: float, clock: Callable[[], float]
    ) -> None:
        """``share``: its share of the time while the other batch has work too."""
        self.running: dict[int, tuple[QueuedRequest, int]] = {}
        """Searches under way: ticket -> request and number of the sentence."""
        self.watched: set[int] = set()
        self.spent = 0.0
        """The seconds of its steps over ``share``: the batch that has spent less is next."""
        self._share = share
        self._clock = clock
        self._new_scheduler = new_scheduler
        self.scheduler = new_scheduler()

    def advance(self, steps: int, free: int) -> list[tuple[int, list[Hypothesis]]]:
        """Call ``Scheduler.advance`` and count its time."""
        began = self._clock()
        done = self.scheduler.advance(steps, free)
        self.spent += (self._clock() - began) / self._share
        return done

    def clear(self) -> None:
        """Forget all searches, after a failure."""
        self.running.clear()
        self.watched.clear()
        self.scheduler = self._new_scheduler()


class Batches:
    """The two batches of a thread: one for costly searches, one for all others."""

    def __init__(
        self,
        new_scheduler: Callable[[], Scheduler],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.little = QueueBatch(new_scheduler, 1 - COSTLY_SHARE, clock)
        self.costly = QueueBatch(new_scheduler, COSTLY_SHARE, clock)

    @property
    def running(self) -> int:
        """The number of searches under way."""
        return len(self.little.running) + len(self.costly.running)

    def submit(self, queued: QueuedRequest, number: int) -> None:
        """Begin the search of a sentence."""
        batch, other = self.little, self.costly
        if queued.costly[number]:
            batch, other = other, batch
        if not batch.running and other.running:
            # A batch does not make up for time that it left unused.
            batch.spent = max(batch.spent, other.spent)
        ticket = batch.scheduler.take(queued.requests[number])
        batch.running[ticket] = queued, number
        if queued.watched:
            batch.watched.add(ticket)

    def next(self) -> QueueBatch:
        """The batch whose step is next."""
        if not self.costly.running:
            return self.little
        if not self.little.running:
            return self.costly
        return min(self.little, self.costly, key=lambda batch: batch.spent)


logger = logging.getLogger("dragoman")

DRAFT_SECONDS = 0.03
"""The shortest time between two drafts of a sentence: faster than eyes, slower than the search."""

REFILL_SHARE = 0.5
"""While many sentences wait, new ones enter, and are encoded together, when this share of the rows
is free; it is less than offline, where no client waits (``search.offline``)."""

STEPS_AT_ONCE = 8
"""Steps of a native search at a time while many wait, to interrupt the event loop less often."""


COUNTED = {
    "sentences": "Sentences translated.",
    "tokens": "Tokens of translations given.",
    "steps": "Steps of the search.",
    "step_rows": "Hypotheses, summed over the steps: over steps, the mean batch.",
    "given_up_sentences": "Sentences under way whose client went away.",
    "model_failures": "Failures of a model.",
}
"""Counters since the start, for operators: names and meanings of the metrics. End symbols count as
tokens; after a failure of the model, the searches under way are answered with an error."""


class Waiting:
    """The waiting requests, shared by the event loop and all threads; ``changed`` must be held to
    use them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = threading.Condition()
        self.fair = FairQueue()
        self.sentences = 0
        self.costly_requests = 0
        """The number of requests with costly searches, waiting or under way."""
        self.departures = 0
        """The number of requests that were given up before all of their sentences were answered."""
        self.closing = False


class Worker:
    """A thread with two batches, which takes sentences from the queue and answers them."""

    def __init__(
        self, waiting: Waiting, new_scheduler: Callable[[], Scheduler], name: str, spare: int
    ) -> None:
        """``name``: the name of its thread; ``spare``: as in ``SearchQueue``."""
        self.counters = Counter(dict.fromkeys(COUNTED, 0))
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._waiting = waiting
        self._new_scheduler = new_scheduler
        self._batches: Batches | None = None
        """None until the thread has begun."""
        self._spare = spare
        self._enough = 0
        """The free rows from which new sentences enter while many wait."""
        self._gathers = False
        self._of_one = self._of_costly = 0
        """The most rows that one client, and costly searches of all clients, may hold."""
        self._held: Counter[str] = Counter()
        """The number of rows under way for each client."""
        self._costly = 0
        """Rows under way of costly searches."""
        self._departures = 0

    @property
    def rows(self) -> int:
        """The number of hypotheses under way."""
        batches = self._batches
        if batches is None:
            return 0
        return batches.little.scheduler.rows + batches.costly.scheduler.rows

    def _work(self) -> None:
        batches = self._batches = Batches(self._new_scheduler)
        rows = batches.little.scheduler.free_rows - self._spare
        self._enough, self._of_one = int(rows * REFILL_SHARE), rows
        self._of_costly = int(rows * COSTLY_SHARE)
        while self._fill(batches):
            batch = batches.next()
            try:
                if self._gathers and batch is batches.little:
                    done = batch.advance(STEPS_AT_ONCE, self._enough)
                else:
                    done = batch.advance(1, 1)
                self._count(batch, done)
                self._tell(batch, done)
            except Exception as error:  # a model may fail with any exception
                logger.exception("the search of %s failed and starts again", self._waiting.name)
                self._fail(batch, error)

    def _fill(self, batches: Batches) -> bool:
        """Wait for work, drop searches that were given up, admit what fits. False at the end."""
        waiting = self._waiting
        taken: list[tuple[QueuedRequest, int]] = []
        with waiting.changed:
            while not (batches.running or waiting.sentences):
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
                rows -= 0 if queued.costly[number] else queued.requests[number].settings.rows
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
        """True if the next sentence of a request may enter now. ``joins``: True if enough rows are
        free for clients that have some already; while many wait, rows are first left to gather.
        ``rows``: the free rows for searches that are not costly."""
        new = queued.requests[queued.taken].settings.rows
        if queued.costly[queued.taken]:
            if self._costly and self._costly + new > self._of_costly:
                return False
        elif rows <= 0:
            return False
        held = self._held[queued.client]
        return not held or (joins and held + new <= self._of_one)

    def _hold(self, queued: QueuedRequest, number: int, sign: int) -> None:
        """Count the rows of a sentence that begins (1) or ends (-1)."""
        rows = sign * queued.requests[number].settings.rows
        self._held[queued.client] += rows
        if not self._held[queued.client]:
            del self._held[queued.client]
        if queued.costly[number]:
            self._costly += rows

    def _count(self, batch: QueueBatch, done: list[tuple[int, list[Hypothesis]]]) -> None:
        counters = self.counters
        counters["steps"] += 1
        counters["step_rows"] += batch.scheduler.rows
        counters["sentences"] += len(done)
        for _, hypotheses in done:
            counters["tokens"] += len(hypotheses[0].token_log_probabilities) if hypotheses else 0

    def _tell(self, batch: QueueBatch, done: list[tuple[int, list[Hypothesis]]]) -> None:
        if done:
            with self._waiting.changed:
                finished = [self._settle(batch, ticket, found) for ticket, found in done]
            for queued in dict.fromkeys(finished):
                if queued.done or queued.watched:
                    queued.wake()
        if batch.watched:
            self._show_drafts(batch)

    def _settle(
        self, batch: QueueBatch, ticket: int, hypotheses: list[Hypothesis]
    ) -> QueuedRequest:
        queued, number = batch.running.pop(ticket)
        self._hold(queued, number, -1)
        queued.answers[number] = hypotheses
        queued.left -= 1
        if queued.watched:
            batch.watched.discard(ticket)
            queued.news[number] = Answer(number, hypotheses)
        return queued

    def _show_drafts(self, batch: QueueBatch) -> None:
        now = time.monotonic()
        due = [t for t in batch.watched if now - batch.running[t][0].shown >= DRAFT_SECONDS]
        shown = []
        for ticket in due:
            queued, number = batch.running[ticket]
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
            batch.watched.discard(ticket)
            self.counters["given_up_sentences"] += 1

    def _fail(self, batch: QueueBatch, error: Exception) -> None:
        """Answer all searches under way in a batch with an error."""
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
