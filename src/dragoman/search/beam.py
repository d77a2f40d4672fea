"""One step of beam search over all sentences at once, as a pure function of arrays.

Each sentence (a *group* of rows) looks at the continuations of its live hypotheses together. Best
first: a continuation by the end symbol that stands among the first ``width`` has ended; of the
others the first ``width`` go on. Groups may differ in width and in how many rows are live, so
greedy search, sampling and beams of any width share one batch: greedy search is a width of 1.

Shapes: N live rows, G groups, k candidates per row, C continuations that a group looks at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.search.hypothesis import Booleans, Floats, Floats32, Integers


@dataclass(frozen=True)
class Expansion:
    """The best continuations of each group, best first: (G, C) each."""

    candidate: Integers
    """Row x k + place: which of the (N, k) candidates it is; anything where total is -inf."""
    token: Integers
    total: Floats
    """Log-probability of the whole hypothesis; -inf where there is none."""
    ends: Booleans
    """Ended by this step."""
    goes_on: Booleans
    """Live after this step."""


def candidates_wanted(width: int) -> int:
    """k for a step: at most ``width`` of one row's candidates go on, and one may be the end.

    For greedy search the best alone decides: it goes on or it is the end.
    """
    return width + 1 if width > 1 else 1


def expand(
    totals: Floats,
    rows: Integers,
    width: Integers,
    may_grow: Booleans,
    log_probabilities: Floats32,
    ids: Integers,
    eos: int,
) -> Expansion:
    """Choose among the candidates of a step.

    ``totals`` (N,) log-probabilities of the hypotheses so far; ``rows`` (G,) how many rows each
    group has, standing together and in order; ``width`` (G,) how many it may keep; ``may_grow``
    (G,) False where only the end symbol may follow; ``log_probabilities`` and ``ids`` (N, k) from
    ``best``, where -inf, or what is not a number, is never chosen.
    """
    count, k = ids.shape
    groups, most_rows, widest = len(rows), int(rows.max()), int(width.max())
    scores = (totals[:, None] + log_probabilities).ravel()  # (N, k) -> (N k,)
    first = ((rows.cumsum() - rows) * k)[:, None]  # (G, 1)
    # Of C = 2 widest at most ``widest`` are ends (one per row), so that enough are left to go on.
    columns = min(2 * widest, most_rows * k)
    if count == groups * most_rows:
        grid = scores.reshape(groups, most_rows * k)
    else:
        cells = np.arange(most_rows * k)
        grid = scores.take(first + cells, mode="clip")  # (G, most_rows k)
        grid[cells >= (rows * k)[:, None]] = -np.inf
    if grid.shape[1] > 1:
        candidate = first + (-grid).argsort(axis=1, kind="stable")[:, :columns]  # (G, C)
    else:
        candidate = first
    total = scores.take(candidate, mode="clip")
    if count != groups * most_rows:
        total[candidate >= first + (rows * k)[:, None]] = -np.inf
    token = ids.take(candidate, mode="clip")
    is_end = token == eos
    live = total > -np.inf
    ends = live & is_end
    goes_on = (live ^ ends) & may_grow[:, None]
    if columns > 1:
        place = np.arange(columns)
        ends &= place < width[:, None]
        goes_on &= goes_on.cumsum(axis=1) <= width[:, None]
    return Expansion(candidate, token, total, ends, goes_on)


@dataclass(frozen=True)
class BeamCandidate:
    """One continuation that a search looked at."""

    parent: int
    """Which of the continuations that went on in the step before (counted from 0) it extends."""
    token: int
    log_probability: float
    """Of the token alone, in nats."""
    total: float
    """Of the whole hypothesis, in nats."""
    outcome: str
    """kept: went on; ended: finished here; dropped: fell out of the beam."""


@dataclass(frozen=True)
class BeamStep:
    """What one search looked at in one step, best first."""

    branch: int
    """Which of a request's searches: its samples and alternatives each have one of their own."""
    place: int
    """The place in the output that was being filled, from 0."""
    candidates: tuple[BeamCandidate, ...]


def beam_step(
    expansion: Expansion,
    group: int,
    first_row: int,
    log_probabilities: Floats32,
    *,
    branch: int,
    place: int,
) -> BeamStep:
    """The record of one group's step, for those who ask to see it."""
    candidates = []
    k = log_probabilities.shape[1]
    for column in np.flatnonzero(expansion.total[group] > -np.inf).tolist():
        candidate = int(expansion.candidate[group, column])
        outcome = "dropped"
        if expansion.goes_on[group, column]:
            outcome = "kept"
        elif expansion.ends[group, column]:
            outcome = "ended"
        candidates.append(
            BeamCandidate(
                parent=candidate // k - first_row,
                token=int(expansion.token[group, column]),
                log_probability=float(log_probabilities.ravel()[candidate]),
                total=float(expansion.total[group, column]),
                outcome=outcome,
            )
        )
    return BeamStep(branch, place, tuple(candidates))
