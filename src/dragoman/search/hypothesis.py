"""The results of a search: hypotheses with their scores and the probability of every token.

The score is that of Wu et al. 2016 (GNMT), section 7, which the paper also uses (section 6.1)::

    score(Y | X) = log P(Y | X) / lp(Y),    lp(Y) = ((5 + |Y|) / (5 + 1))^α

With the setting ``penalty = "marian"``, lp(Y) is |Y|^α instead.

|Y| counts the chosen tokens, including the end symbol. log P is always the model's own:
temperature, forced prefixes and forbidden tokens decide which token is chosen, but never change its
log-probability.

With ``Request.record``, a search also records the continuations that each step ranked, and the
outcome of each.
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
    """The tokens of the output, without start and end symbols."""
    score: float
    """Log-probability divided by length penalty; higher is better. ``rank`` sorts n-best lists:
    first the outputs that the model ended, then those that were cut, each by score."""
    log_probability: float
    """log P(Y | X) in nats; for an unfinished hypothesis, that of its tokens so far."""
    token_log_probabilities: tuple[float, ...]
    """The log-probability of each token and, if finished, of the end symbol. ``log_probability`` is
    their sum."""
    finished: bool
    """True if the model ended the output. False if it was cut, at its length limit or because no
    token was allowed to follow."""


SHIFTS: dict[Penalty, float] = {"wu": 5.0, "marian": 0.0}
"""The s of each formula in lp(Y) = ((s + |Y|) / (s + 1))^α, which covers both."""


def length_penalty(length: int, alpha: float, penalty: Penalty = "wu") -> float:
    """Return lp(Y) of Wu et al. 2016, equation 14, or Marian's. ``length`` is |Y|, at least 1. The
    result is 1 where α is 0."""
    shift = SHIFTS[penalty]
    return float(((shift + length) / (shift + 1.0)) ** alpha)


def hypothesis_of(
    tokens: Sequence[int],
    log_probabilities: Sequence[float],
    settings: SearchSettings | None = None,
    *,
    finished: bool,
) -> Hypothesis:
    """Score a sequence. ``log_probabilities`` has one entry more than ``tokens`` if finished.
    ``settings`` give the length penalty; None: there is none."""
    total = score = sum(log_probabilities, 0.0)
    if settings is not None:
        length = max(1, len(log_probabilities))
        score /= length_penalty(length, settings.length_penalty, settings.penalty)
    return Hypothesis(tuple(tokens), score, total, tuple(log_probabilities), finished)


def rank(finished: bool, score: float) -> tuple[bool, float]:
    """Return the key by which n-best lists are sorted, best first. Cut outputs come after those
    that the model ended: the score of a cut output lacks the cost of what is missing, and so is too
    high to compare."""
    return not finished, -score


def best_of(hypotheses: Sequence[Hypothesis], count: int) -> list[Hypothesis]:
    """Return the ``count`` best hypotheses, best first (``rank``)."""
    return sorted(hypotheses, key=lambda h: rank(h.finished, h.score))[:count]


@dataclass(frozen=True)
class ContinuationRecord:
    """A hypothesis extended by one token, as a search ranked it."""

    parent: int
    """The number of the continuation, among those of the step before that went on (counted from 0),
    which this one extends."""
    token: int
    log_probability: float
    """The log-probability of the token alone, in nats."""
    total: float
    """The log-probability of the whole hypothesis, in nats."""
    outcome: str
    """kept: it continues in the next step; ended: it is finished; dropped: it fell out of the
    beam."""


@dataclass(frozen=True)
class StepRecord:
    """The continuations that one search ranked in one step, best first."""

    branch: int
    """The number of the search within its request: each sample and each alternative has its own
    search."""
    place: int
    """The place in the output that the step fills, counted from 0."""
    continuations: tuple[ContinuationRecord, ...]
