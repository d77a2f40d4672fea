"""The results of a search: hypotheses with their scores and the probability of every token.

The score is that of Wu et al. 2016 (GNMT), section 7, which the paper takes over (section 6.1)::

    score(Y | X) = log P(Y | X) / lp(Y),    lp(Y) = ((5 + |Y|) / (5 + 1))^α

With the setting ``penalty = "marian"`` it is lp(Y) = |Y|^α in its place.

|Y| counts the tokens that were chosen, the end symbol included. log P is always the model's own:
temperature, forced prefixes and forbidden tokens decide which token is taken, never what it costs.

A request that asks to see them (``Request.record``) is also given what each step looked at and what
became of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman.search.settings import Penalty, SearchSettings

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output of a search, or a given output scored by force decoding."""

    tokens: tuple[int, ...]
    """Without the start and end symbols."""
    score: float
    """Log-probability over length penalty: higher is better. N-best lists are sorted by it: first
    the outputs that the model ended, then those that were cut (``rank``)."""
    log_probability: float
    """log P(Y | X) in nats; of the tokens so far if not finished."""
    token_log_probabilities: tuple[float, ...]
    """One per token, and one more for the end symbol if finished; their sum is the above."""
    finished: bool
    """True if the model ended it. If not, it was cut: by its length limit, or because no token was
    allowed to follow."""


SHIFTS: dict[Penalty, float] = {"wu": 5.0, "marian": 0.0}
"""s in lp(Y) = ((s + |Y|) / (s + 1))^α, of which both formulas are cases."""


def length_penalty(length: int, alpha: float, penalty: Penalty = "wu") -> float:
    """lp(Y) of Wu et al. 2016, equation 14, or Marian's, where ``length`` is |Y| and at least 1; 1
    where α is 0."""
    shift = SHIFTS[penalty]
    return float(((shift + length) / (shift + 1.0)) ** alpha)


def hypothesis_of(
    tokens: Sequence[int],
    log_probabilities: Sequence[float],
    settings: SearchSettings | None = None,
    *,
    finished: bool,
) -> Hypothesis:
    """Score a sequence; ``log_probabilities`` has one entry more than ``tokens`` if finished.
    ``settings`` give the length penalty; None: there is none."""
    total = score = sum(log_probabilities, 0.0)
    if settings is not None:
        length = max(1, len(log_probabilities))
        score /= length_penalty(length, settings.length_penalty, settings.penalty)
    return Hypothesis(tuple(tokens), score, total, tuple(log_probabilities), finished)


def rank(finished: bool, score: float) -> tuple[bool, float]:
    """The key by which n-best lists are sorted, the best first. What was cut stands behind what the
    model ended: its score lacks the cost of what is missing, and so is too high beside theirs."""
    return not finished, -score


def ranked(hypotheses: Sequence[Hypothesis], count: int) -> list[Hypothesis]:
    """The ``count`` best, best first (``rank``)."""
    return sorted(hypotheses, key=lambda h: rank(h.finished, h.score))[:count]


@dataclass(frozen=True)
class ContinuationRecord:
    """A hypothesis with one more token, which a search looked at."""

    parent: int
    """Which of the continuations that went on in the step before (counted from 0) it extends."""
    token: int
    log_probability: float
    """log P of the token alone, in nats."""
    total: float
    """log P of the whole hypothesis, in nats."""
    outcome: str
    """kept: went on; ended: finished here; dropped: fell out of the beam."""


@dataclass(frozen=True)
class StepRecord:
    """The continuations that one search looked at in one step, best first."""

    branch: int
    """Which of a request's searches: its samples and alternatives each have one of their own."""
    place: int
    """The place in the output that was being filled, from 0."""
    continuations: tuple[ContinuationRecord, ...]
