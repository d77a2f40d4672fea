"""The mean of a few runs and how sure it is: Student's interval.

It takes the runs as drawn from a normal distribution, of which nothing is known before; of two runs
it is therefore wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev

_WITHIN = 0.95
"""How probable it is that an interval holds the mean."""


@dataclass(frozen=True)
class Estimate:
    """A mean of some values."""

    mean: float
    half: float | None
    """Half the width of its 95 % interval; None of one value alone."""
    count: int

    @property
    def differs_from_zero(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.half is not None and abs(self.mean) > self.half


def estimate(values: Sequence[float]) -> Estimate:
    """Of at least one value."""
    count = len(values)
    if count < 2:
        return Estimate(fmean(values), None, count)
    half = quantile(count - 1) * stdev(values) / math.sqrt(count)
    return Estimate(fmean(values), half, count)


@cache
def quantile(freedom: int) -> float:
    """t such that 95 % of Student's distribution, of so many degrees of freedom, is in [-t, t]."""
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / √ν
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _between(middle, freedom) < _WITHIN else (low, middle)
    return math.sqrt(freedom) * math.tan(middle)


def _between(angle: float, freedom: int) -> float:
    """The probability of what lies between -t and t = √ν tan θ, as a finite sum (Abramowitz and
    Stegun, 1964, 26.7.3 and 26.7.4): with ν odd

        (2 / π) (θ + sin θ (cos θ + 2/3 cos³ θ + … + 2·4…(ν-3) / (1·3…(ν-2)) cos^{ν-2} θ)),

    with ν even

        sin θ (1 + 1/2 cos² θ + … + 1·3…(ν-3) / (2·4…(ν-2)) cos^{ν-2} θ).
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    series = 0.0 if freedom == 1 else term
    for power in range(2 + odd, freedom - 1, 2):
        term *= (power - 1) / power * cosine**2
        series += term
    return 2 / math.pi * (angle + sine * series) if odd else sine * series
