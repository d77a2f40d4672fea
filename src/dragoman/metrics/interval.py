"""The mean of a few runs and how sure it is: Student's interval.

It takes the runs as drawn from a normal distribution, of which nothing is known before; of two runs
it is therefore wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t for 95 %, both sides, with 1, 2, … degrees of freedom."""
_NORMAL = 1.960


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

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if self.half is None else f" ± {self.half:.2f}")


def estimate(values: Sequence[float]) -> Estimate:
    """Of at least one value."""
    count = len(values)
    if count < 2:
        return Estimate(fmean(values), None, count)
    t = _T[count - 2] if count - 2 < len(_T) else _NORMAL
    return Estimate(fmean(values), t * stdev(values) / math.sqrt(count), count)
