"""The learning rate of every update.

``noam`` is the paper's equation 3 (§5.3)::

    lrate = d_model^-0.5 · min(step_num^-0.5, step_num · warmup_steps^-1.5)

The other schedules have come into use since. All except ``noam`` have a peak that you set. All
schedules rise linearly during the warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from pydantic import Field

from dragoman.base.settings import Settings

Schedule = Callable[[int], float]
"""A function from the number of an update, counted from 1, to its learning rate."""


class ScheduleSettings(Settings):
    """Settings of the learning rate schedule."""

    kind: Literal["noam", "inverse_square_root", "cosine", "constant"] = "noam"
    """noam: the paper's schedule, whose peak depends on the model width and the warm-up. The other
    schedules rise to `peak`, and then decay with the inverse square root, decay as a cosine to
    `floor`, or stay constant."""
    warmup: int = Field(default=4000, ge=0, le=1_000_000_000)
    """The number of updates until the rate reaches its peak (warmup_steps)."""
    factor: float = Field(default=1.0, gt=0, le=1000)
    """For noam: a factor for the whole schedule (the paper: 1)."""
    peak: float = Field(default=5e-4, gt=0, le=100)
    """The peak rate, for all schedules except noam."""
    floor: float = Field(default=0.0, ge=0, le=100)
    """For cosine: the rate at the last update."""


def make_schedule(settings: ScheduleSettings, *, model_dim: int, updates: int) -> Schedule:
    """Return the schedule for a model of width ``model_dim`` (d_model) and a run of ``updates``
    updates."""
    if settings.kind == "noam":
        scale = settings.factor * model_dim**-0.5
        return lambda step: scale * _rise_and_decay(step, settings.warmup)
    warmup, peak, floor = settings.warmup, settings.peak, settings.floor
    if settings.kind == "inverse_square_root":
        height = peak * max(warmup, 1) ** 0.5
        return lambda step: height * _rise_and_decay(step, warmup)
    if settings.kind == "cosine":
        return lambda step: _warm(step, warmup, peak) or _cosine(step, warmup, updates, peak, floor)
    return lambda step: _warm(step, warmup, peak) or peak


def _rise_and_decay(step: int, warmup: int) -> float:
    """Return min(step^-0.5, step · warmup^-1.5), or step^-0.5 if there is no warm-up."""
    decay = float(step**-0.5)
    return decay if warmup == 0 else min(decay, float(step * warmup**-1.5))


def _warm(step: int, warmup: int, peak: float) -> float:
    """Return the learning rate during the linear warm-up, or 0 after it, when another formula is
    used."""
    return peak * step / warmup if step < warmup else 0.0


def _cosine(step: int, warmup: int, updates: int, peak: float, floor: float) -> float:
    progress = min(max(step - warmup, 0) / max(updates - warmup, 1), 1.0)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * progress))
