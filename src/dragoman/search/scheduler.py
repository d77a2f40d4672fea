"""Many searches in one batch that is kept full: what is done leaves, what waits comes in.

Requests of any settings share the batch. It speaks ``encode``, ``start``, ``best``, ``select`` and
``admit`` with the model and nothing else, so plain models, other architectures and fast paths are
searched alike. What a request is answered does not depend on its neighbours.

One thread drives a scheduler. Who may enter next is its caller's business: requests are admitted
in the order in which they were submitted.

Shapes: N rows (hypotheses), G groups (searches), k candidates per row, C candidates looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dragoman.models.interface import Adjust, DecodeState, Memory
from dragoman.nn.layout import Sequences
from dragoman.search.beam import Expansion, beam_step, candidates_wanted, expand
from dragoman.search.constraints import (
    NOTHING,
    drop_forbidden,
    forbidden_tokens,
    only_tokens,
)
from dragoman.search.hypothesis import (
    Booleans,
    Floats32,
    Hypothesis,
    Integers,
    length_penalty,
    ranked,
)
from dragoman.search.live import Live, Task
from dragoman.search.request import Request

CAPACITY_ROWS = 64
"""More rows than this fall out of a processor's cache, as measured at widths 256 and 512."""

CAPACITY_TOKENS = 8192
"""Positions of sources under way: bounds the memory of long ones and the size of one encoding."""


class Searchable(Protocol):
    """What search needs of a model: ``Encodes``, and of ``Generates`` what search speaks."""

    def encode(self, source: Sequences, /) -> Memory: ...

    def start(self, memory: Memory, /) -> DecodeState: ...

    def best(
        self, tokens: Tensor, state: DecodeState, k: int, adjust: Adjust | None = None, /
    ) -> tuple[Tensor, Tensor]: ...


class Scheduler:
    """Runs searches, step by step, many at a time.

    ``submit`` hands in a request, ``advance`` takes one step of all and gives back what is done.
    """

    def __init__(
        self,
        model: Searchable,
        *,
        bos: int,
        eos: int,
        capacity_rows: int = CAPACITY_ROWS,
        capacity_tokens: int = CAPACITY_TOKENS,
        refill_rows: int = 1,
        forbidden: Sequence[int] = (),
        device: torch.device | str = "cpu",
    ) -> None:
        """``capacity_rows``: hypotheses in the batch; a request that needs more of them, or more
        source positions than ``capacity_tokens``, is searched alone. ``refill_rows``: new requests
        wait until so many rows are free, so that they are encoded together; 1 is best for those
        who wait, more for those who count. ``forbidden``: tokens that no output may hold.
        """
        self._model = model
        self._eos = eos
        self._capacity_rows = capacity_rows
        self._capacity_tokens = capacity_tokens
        self._refill_rows = min(refill_rows, capacity_rows)
        self._forbidden = np.array(sorted(forbidden), dtype=np.int64)
        self._device = torch.device(device)
        self._waiting: deque[Task] = deque()
        self._running: dict[int, Task] = {}
        self._waiting_rows = 0
        self._running_rows = 0
        self._running_tokens = 0
        self._live = Live(bos)
        self._state: DecodeState | None = None
        self._tickets = 0
        self._answers: list[tuple[int, list[Hypothesis]]] = []

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._waiting or self._running or self._answers)

    @property
    def rows(self) -> int:
        """Hypotheses in the batch."""
        return self._live.rows

    @property
    def waiting(self) -> int:
        """Requests that were submitted and are not in the batch yet."""
        return len(self._waiting)

    @property
    def free_rows(self) -> int:
        """Rows that neither running nor waiting requests have a claim to; negative if too many."""
        return self._capacity_rows - self._running_rows - self._waiting_rows

    def submit(self, request: Request) -> int:
        """Hand in a request -> its ticket, by which its answer comes back from ``advance``.

        Raises SearchError if it cannot be met.
        """
        request.check(self._eos)
        self._tickets += 1
        task = Task(self._tickets, request, request.searches)
        if len(request.source):
            self._waiting.append(task)
            self._waiting_rows += request.rows
        else:
            nothing = Hypothesis((), 0.0, 0.0, (), finished=True)
            self._answers.append((task.ticket, [nothing]))
        return task.ticket

    def cancel(self, ticket: int) -> None:
        """Forget a request; its rows are free at once. One that is done already has no effect."""
        self._answers = [answer for answer in self._answers if answer[0] != ticket]
        for task in [task for task in self._waiting if task.ticket == ticket]:
            self._waiting.remove(task)
            self._waiting_rows -= task.request.rows
        if ticket in self._running:
            self._forget(self._running[ticket])
            self._select(self._live.discard(self._groups_of(ticket)))

    def so_far(self, ticket: int) -> Hypothesis | None:
        """The best live hypothesis of a running request, to be shown while it grows.

        Greedy search and sampling only ever add to it (the first sample, if there are several);
        beam search may change its mind. None if the request waits or is done.
        """
        if ticket not in self._running:
            return None
        return self._live.hypothesis(int(self._groups_of(ticket).argmax()))

    @torch.no_grad()
    def advance(self) -> list[tuple[int, list[Hypothesis]]]:
        """Admit what fits, take one step of all -> (ticket, its n best) of those now done.

        An exception of the model comes through; the scheduler is then no longer of use.
        """
        self._admit()
        if self._state is not None:
            self._step(self._state)
        answers, self._answers = self._answers, []
        return answers

    def _admit(self) -> None:
        """Encode what waits and fits, and let it join."""
        if self._running and self._capacity_rows - self._running_rows < self._refill_rows:
            return
        while tasks := self._next_tasks():
            sources = Sequences.of([task.request.source for task in tasks]).to(self._device)
            memory = self._model.encode(sources)
            old = self._live.rows
            if self._state is None:
                self._state = self._model.start(memory)
            else:
                self._state.admit(memory)
            self._live.add(tasks)
            copies = [1] * old + [task.request.searches for task in tasks]
            if max(copies) > 1:
                self._select(np.arange(len(copies)).repeat(copies))

    def _next_tasks(self) -> list[Task]:
        """Take from the queue what fits into the batch, in order, and count it as running."""
        tasks: list[Task] = []
        while self._waiting:
            request = self._waiting[0].request
            fits = (
                self._running_rows + request.rows <= self._capacity_rows
                and self._running_tokens + len(request.source) <= self._capacity_tokens
            )
            if self._running and not fits:
                break
            task = self._waiting.popleft()
            self._waiting_rows -= request.rows
            self._running[task.ticket] = task
            self._running_rows += request.rows
            self._running_tokens += len(request.source)
            tasks.append(task)
        return tasks

    def _step(self, state: DecodeState) -> None:
        live, groups = self._live, self._live.groups
        is_forced: Booleans | None = None
        if live.longest_prefix and (forced := groups["length"] < groups["prefix"]).any():
            is_forced = forced
        forbidden = forbidden_tokens(live, is_forced, self._forbidden, self._eos)
        wanted = candidates_wanted(live.widest)
        if forbidden is not None:
            wanted += int((forbidden != NOTHING).sum(axis=1).max())
        adjust: Adjust | None = None
        if is_forced is not None or live.draws:
            adjust = only_tokens(live, is_forced, forbidden, self._device)
        tokens = torch.from_numpy(live.last[:, None]).to(self._device)  # (N, 1)
        best, best_ids = self._model.best(tokens, state, wanted, adjust)
        log_probabilities, ids = best.cpu().numpy(), best_ids.cpu().numpy()  # (N, k)
        if forbidden is not None:
            log_probabilities = drop_forbidden(log_probabilities, ids, forbidden)
        expansion = expand(
            live.totals,
            groups["rows"],
            groups["width"],
            groups["length"] < groups["limit"],
            log_probabilities,
            ids,
            self._eos,
        )
        self._settle(expansion, log_probabilities)

    def _settle(self, expansion: Expansion, log_probabilities: Floats32) -> None:
        """Put away what has ended, find out which groups are done, and go on with the others."""
        live, groups = self._live, self._live.groups
        goes_on = expansion.goes_on
        if expansion.ends.any():
            self._end(expansion, log_probabilities)
        is_splitting: Booleans | None = None
        if live.splits:
            is_splitting = groups["splits"] & (groups["length"] == groups["prefix"])
            # Each of the n best tokens is one alternative, and so is the end symbol.
            place = np.arange(goes_on.shape[1])
            goes_on &= ~is_splitting[:, None] | (place < groups["width"][:, None])
        if live.recorded:
            self._record(expansion, log_probabilities)
        counts = goes_on.sum(axis=1)
        best = expansion.total[np.arange(len(groups)), goes_on.argmax(axis=1)]
        # What is live can at best go on at no cost to its greatest length.
        is_done = (groups["worst"] >= best / groups["ceiling"]) | (
            groups["ended"] >= groups["quota"]
        )
        if is_splitting is not None:
            is_done &= ~is_splitting
        is_done |= counts == 0
        if is_done.any():
            goes_on[is_done] = False
            counts[is_done] = 0
            self._close(is_done, expansion, log_probabilities.shape[1])
        candidate = expansion.candidate[goes_on]  # (M,)
        rows = candidate // log_probabilities.shape[1]
        moved = live.grow(
            rows,
            counts,
            expansion.token[goes_on],
            expansion.total[goes_on],
            log_probabilities.take(candidate),
        )
        if is_done.any():
            live.drop_done()
        if is_splitting is not None and is_splitting.any():
            live.split(is_splitting[~is_done])
        if moved:
            self._select(rows)

    def _select(self, rows: Integers) -> None:
        if not len(rows):
            self._state = None
        elif self._state is not None:
            self._state.select(torch.from_numpy(rows).to(self._device))

    def _end(self, expansion: Expansion, log_probabilities: Floats32) -> None:
        """Keep the ended hypotheses that are among the n best of their group."""
        groups, ends = self._live.groups, expansion.ends
        group = ends.nonzero()[0]
        groups["ended"] += ends.sum(axis=1)
        penalty = length_penalty(groups["length"][group] + 1, groups["alpha"][group])
        score = expansion.total[ends] / penalty
        is_better = score > groups["worst"][group]
        candidate = expansion.candidate[ends][is_better]
        for one_group, row, one_score, end in zip(
            group[is_better].tolist(),
            (candidate // log_probabilities.shape[1]).tolist(),
            score[is_better].tolist(),
            log_probabilities.take(candidate).tolist(),
            strict=True,
        ):
            self._live.end(one_group, row, one_score, end)

    def _close(self, is_done: Booleans, expansion: Expansion, k: int) -> None:
        """Take the results of the groups that are done; answer requests without open groups."""
        live, groups = self._live, self._live.groups
        first_row = groups["rows"].cumsum() - groups["rows"]
        for group in np.flatnonzero(is_done).tolist():
            pool = live.pools[group]
            if len(pool.ended) < pool.keep:
                # Too few have ended, and nothing may follow: give those that were live as they are.
                ended = (expansion.candidate[group, expansion.ends[group]] // k).tolist()
                first, count = int(first_row[group]), int(groups["rows"][group])
                penalty = length_penalty(groups["length"][group], groups["alpha"][group])
                for row in sorted(set(range(first, first + count)).difference(ended)):
                    live.end(group, row, float(live.totals[row] / penalty), None)
            task = pool.task
            task.answers += pool.hypotheses()
            task.open -= 1
            if not task.open:
                best = ranked(task.answers, task.request.settings.n_best)
                self._answers.append((task.ticket, best))
                self._forget(task)

    def _record(self, expansion: Expansion, log_probabilities: Floats32) -> None:
        """Show the step to those who asked to see it."""
        live, groups = self._live, self._live.groups
        first_row = groups["rows"].cumsum() - groups["rows"]
        for group in np.flatnonzero(groups["recorded"]).tolist():
            pool = live.pools[group]
            record = pool.task.request.record
            assert record is not None
            record.append(
                beam_step(
                    expansion,
                    group,
                    int(first_row[group]),
                    log_probabilities,
                    branch=pool.branch,
                    place=int(groups["length"][group]),
                )
            )

    def _groups_of(self, ticket: int) -> Booleans:
        """(G,) which groups belong to a request."""
        return np.array([pool.task.ticket == ticket for pool in self._live.pools])

    def _forget(self, task: Task) -> None:
        del self._running[task.ticket]
        self._running_rows -= task.request.rows
        self._running_tokens -= len(task.request.source)
