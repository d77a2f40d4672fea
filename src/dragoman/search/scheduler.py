"""Runs many searches in one batch that is kept full: requests that are done leave it, and waiting
requests enter.

Requests of any settings share the batch. A scheduler calls a model only through the interface of
``models/searched.py``, so plain models, other architectures and fast paths are searched alike. The
answer to a request does not depend on the other requests in the batch.

One thread drives a scheduler. Requests enter in the order in which they were submitted, so the
caller decides which one is next.

Shapes: N rows (live hypotheses), G groups (searches), k candidates per row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from dragoman.models.searched import Constrain, SearchModel, SearchSession
from dragoman.search.beam import fastest_beam
from dragoman.search.beam_state import BeamState
from dragoman.search.constraints import forbidden_tokens, only_tokens
from dragoman.search.hypothesis import (
    Booleans,
    ContinuationRecord,
    Floats32,
    Hypothesis,
    StepRecord,
    best_of,
)
from dragoman.search.request import Request, SearchJob, rows_of

CAPACITY_ROWS = 64
"""The usual number of rows. More rows do not fit in a processor's cache, as measured at widths 256
and 512."""

CAPACITY_TOKENS = 8192
"""The most source positions under way. This bounds the memory of long sources and the size of one
encoding."""


class Scheduler:
    """Runs many searches step by step.

    ``submit`` adds a request; ``advance`` takes one step of every search and returns the answers to
    the requests that are done.
    """

    def __init__(
        self,
        model: SearchModel,
        *,
        bos: int,
        eos: int,
        capacity_rows: int = CAPACITY_ROWS,
        capacity_tokens: int = CAPACITY_TOKENS,
        refill_rows: int = 1,
        forbidden: Sequence[int] = (),
    ) -> None:
        """``capacity_rows``: the most hypotheses in the batch; a request that needs more, or that
        has more source positions than ``capacity_tokens``, is searched alone. ``refill_rows``: new
        requests wait until this many rows are free, so that they are encoded together; 1 gives the
        shortest waits, more the highest throughput. ``forbidden``: tokens that no output may
        hold."""
        self._model = model
        self._eos = eos
        self._capacity_rows = capacity_rows
        self._capacity_tokens = capacity_tokens
        self._refill_rows = min(refill_rows, capacity_rows)
        self._forbidden = np.array(sorted(forbidden), dtype=np.int64)
        self._waiting: deque[SearchJob] = deque()
        self._running: dict[int, SearchJob] = {}
        self._running_rows = 0
        self._running_tokens = 0
        self.free_rows = capacity_rows
        """The number of rows that no running or waiting request needs; negative if they need more
        than there are."""
        self._live = BeamState(bos)
        self._beam = fastest_beam(self._live)
        self._state: SearchSession | None = None
        self._tickets = 0
        self._answers: list[tuple[int, list[Hypothesis]]] = []

    @property
    def idle(self) -> bool:
        """True if no request is waiting or running, and no answer is left to return."""
        return not (self._waiting or self._running or self._answers)

    @property
    def rows(self) -> int:
        """The number of hypotheses in the batch."""
        return self._live.rows

    def submit(self, request: Request, *, is_checked: bool = False) -> int:
        """Submit a request, and return its ticket: ``advance`` returns the answer with it.

        ``is_checked``: True if the request has been checked already. Raises SearchError for a
        request that cannot be met.
        """
        if not is_checked:
            request.check(self._eos)
        self._tickets += 1
        settings, length = request.settings, len(request.source)
        searches = 1 if settings.sampling is None else settings.n_best  # one per sample
        job = SearchJob(self._tickets, request, searches, rows_of(settings), length)
        if length:
            self._waiting.append(job)
            self.free_rows -= job.rows
        else:
            nothing = Hypothesis((), 0.0, 0.0, (), finished=True)
            self._answers.append((job.ticket, [nothing]))
        return job.ticket

    def cancel(self, ticket: int) -> None:
        """Remove a request, whose rows are free at once. A request whose answer was returned is
        ignored."""
        self._answers = [answer for answer in self._answers if answer[0] != ticket]
        for job in [job for job in self._waiting if job.ticket == ticket]:
            self._waiting.remove(job)
            self.free_rows += job.rows
        if ticket in self._running:
            self._forget(self._running[ticket])
            self._live.discard(self._groups_of(ticket))
            self._follow()

    def so_far(self, ticket: int) -> Hypothesis | None:
        """Return the best live hypothesis of a running request, to be shown while it grows; None if
        the request waits or is done.

        Greedy search and sampling only append to it (for several samples, it is the first one still
        running); beam search may replace it.
        """
        if ticket not in self._running:
            return None
        return self._live.hypothesis(int(self._groups_of(ticket).argmax()))

    def advance(self, steps: int = 1, free: int = 1) -> list[tuple[int, list[Hypothesis]]]:
        """Admit waiting requests for which there is room, and take one step of every search. Return
        (ticket, n best hypotheses) of each request that is done.

        Where native code takes the steps, it takes up to ``steps`` of them until ``free`` rows are
        free, or ``refill_rows`` if that is more. Keep ``steps`` at 1 to watch each step, or to let
        requests enter at once.

        An exception of the model is passed on, and the scheduler cannot be used after it.
        """
        self._admit()
        state = self._state
        if state is not None and not (self._live.plain and self._run(state, steps, free)):
            self._step(state)
        answers, self._answers = self._answers, []
        return answers

    def _admit(self) -> None:
        """Encode the waiting requests for which there is room, in order, and add them to the
        batch."""
        if not self._waiting:
            return
        if self._running and self._capacity_rows - self._running_rows < self._refill_rows:
            return
        jobs: list[SearchJob] = []
        while self._waiting:
            job = self._waiting[0]
            fits = (
                self._running_rows + job.rows <= self._capacity_rows
                and self._running_tokens + job.source_length <= self._capacity_tokens
            )
            if self._running and not fits:
                break
            self._waiting.popleft()
            self._running[job.ticket] = job
            self._running_rows += job.rows
            self._running_tokens += job.source_length
            jobs.append(job)
        if not jobs:
            return
        sources = [job.request.source for job in jobs]
        if self._state is None:
            self._state = self._model.begin(sources)
        else:
            self._state.admit(sources)
        copies = [1] * self._live.rows + [job.open for job in jobs]
        self._live.add(jobs, self._running_rows)
        if max(copies) > 1:
            self._state.select(np.arange(len(copies)).repeat(copies))

    def _run(self, state: SearchSession, steps: int, free: int) -> bool:
        """Take steps of ``plain`` searches in native code. Return False if native code could take
        none."""
        live = self._live
        wanted = live.candidates + len(self._forbidden)
        step = state.native(wanted, live.longest + 1)
        if step is None:
            return False
        # It comes back when so many rows more are free.
        enough = max(free, self._refill_rows) - (self._capacity_rows - self._running_rows)
        steps = min(steps, live.all_tokens.shape[1] - live.longest)  # for which there is room
        taken, any_done = self._beam.run(
            step, wanted, self._eos, self._forbidden, steps, max(1, enough)
        )
        if not taken:
            return False  # what was wrong is said by the step that Python takes
        live.take_found()
        if any_done:
            self._close_done(0)
        live.grew(taken)
        if any_done:
            live.drop_done()
        if not live.rows:
            self._state = None
        return True

    def _step(self, state: SearchSession) -> None:
        live, groups = self._live, self._live.groups
        is_forced: Booleans = groups["length"] < groups["prefix"]
        forbidden = forbidden_tokens(live, is_forced, self._forbidden, self._eos)
        wanted = live.candidates + forbidden.shape[1]
        constrain: Constrain | None = None
        if live.draws or live.ruled or is_forced.any():
            constrain = only_tokens(live, is_forced, forbidden)
        log_probabilities, ids = state.best(
            live.all_last[: live.rows, None], wanted, constrain
        )  # (N, k)
        ended = self._beam.expand(log_probabilities, ids, self._eos, forbidden)
        for group, row, length, end in live.all_ended[:ended].tolist():
            live.end(group, row, length, end)
        any_done = self._beam.judge()
        if any_done:
            self._close_done(ended)
        if live.recorded:
            self._record(log_probabilities)
        is_splitting: Booleans | None = None
        if live.splits:
            is_splitting = groups["splits"] & (groups["length"] == groups["prefix"])
            is_splitting = is_splitting[~groups["done"]]
        moved = self._beam.move()
        live.grew()
        if any_done:
            live.drop_done()
        if is_splitting is not None and is_splitting.any():
            live.split(is_splitting)
        if moved:
            self._follow()

    def _follow(self) -> None:
        """Select the rows of the model's state that are live now."""
        if not self._live.rows:
            self._state = None
        elif self._state is not None:
            self._state.select(self._live.all_parents[: self._live.rows])

    def _close_done(self, ended: int) -> None:
        """Close the groups that are done, and answer the requests that have no other groups.
        ``ended``: the number of rows in ``live.all_ended``, those that ended in the last step."""
        live, groups = self._live, self._live.groups
        for group in groups["done"].nonzero()[0].tolist():
            pool = live.pools[group]
            if len(pool.hypotheses) < pool.keep:
                # Too few have ended and nothing may follow: give what is live as it stands.
                first, length = int(groups["rows"][:group].sum()), int(groups["length"][group])
                rows = range(first, first + int(groups["rows"][group]))
                left = sorted(set(rows).difference(live.all_ended["row"][:ended].tolist()))
                for row in left[: pool.keep - len(pool.hypotheses)]:
                    live.end(group, row, length, None)
            job = pool.job
            job.answers += pool.hypotheses
            job.open -= 1
            if not job.open:
                best = best_of(job.answers, job.request.settings.n_best)
                self._answers.append((job.ticket, best))
                self._forget(job)

    def _record(self, log_probabilities: Floats32) -> None:
        """Append the step to the ``record`` of each request that has one."""
        live, groups = self._live, self._live.groups
        k = log_probabilities.shape[1]
        of_tokens = log_probabilities.reshape(-1)
        first_row = groups["rows"].cumsum() - groups["rows"]
        for group in np.flatnonzero(groups["recorded"]).tolist():
            pool = live.pools[group]
            continuations = tuple(
                ContinuationRecord(
                    parent=candidate // k - int(first_row[group]),
                    token=token,
                    log_probability=float(of_tokens[candidate]),
                    total=total,
                    outcome="kept" if goes_on else "ended" if ends else "dropped",
                )
                for candidate, token, total, ends, goes_on in live.looked[
                    group, : 2 * int(groups["width"][group])
                ].tolist()
                if total > -np.inf
            )
            place = int(groups["length"][group])
            record = pool.job.request.record
            assert record is not None
            record.append(StepRecord(pool.branch, place, continuations))

    def _groups_of(self, ticket: int) -> Booleans:
        """Return flags (G,), True for the groups of a request."""
        return np.array([pool.job.ticket == ticket for pool in self._live.pools])

    def _forget(self, job: SearchJob) -> None:
        del self._running[job.ticket]
        self.free_rows += job.rows
        self._running_rows -= job.rows
        self._running_tokens -= job.source_length
