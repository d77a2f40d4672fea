"""What a search looked at and what became of it, for those who ask to see it.

Nothing of this is made for requests that do not ask (``Request.record``).
"""

from __future__ import annotations

from dataclasses import dataclass


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
    """What one search looked at in one step, best first."""

    branch: int
    """Which of a request's searches: its samples and alternatives each have one of their own."""
    place: int
    """The place in the output that was being filled, from 0."""
    continuations: tuple[ContinuationRecord, ...]
