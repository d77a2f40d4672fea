"""The ratio of the lengths of translations and sources, as Gale and Church (1993) model it.

Each source token yields c target tokens on average, with a variance that grows with the length, so

    δ = (t − c s) / √s

of s source and t target tokens has the same distribution for short and long sentences. The
distribution is taken from the pairs themselves: a δ beyond all but one in a thousand of them is
unusual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

_TAIL = 0.0005
"""The share of training pairs beyond each limit."""
_FEWEST = 2000
"""Fewer pairs than this do not show so small a share."""
_MOST = 1_000_000
"""At most about this many pairs are used."""

Lengths = npt.NDArray[np.int32]


@dataclass(frozen=True)
class LengthRatio:
    """The ratio c and the limits of δ, for lengths in tokens without end symbols."""

    ratio: float
    least: float
    greatest: float

    @classmethod
    def of(cls, source: Lengths, target: Lengths) -> Self | None:
        """Estimate the ratio from the lengths of all training pairs, or of many of them, evenly
        spread; None for too few."""
        step = max(1, -(-len(source) // _MOST))
        s, t = (lengths[::step].astype(np.float64) for lengths in (source, target))
        s, t = s[s > 0], t[s > 0]
        if len(s) < _FEWEST:
            return None
        ratio = float(t.sum() / s.sum())
        least, greatest = np.quantile((t - ratio * s) / np.sqrt(s), [_TAIL, 1 - _TAIL])
        return cls(round(ratio, 4), round(float(least), 4), round(float(greatest), 4))

    def judge(self, source: int, target: int) -> int:
        """Return -1 for an unusually short translation, 1 for an unusually long one, else 0."""
        if source == 0:
            return 0
        delta = (target - self.ratio * source) / source**0.5
        return int(delta > self.greatest) - int(delta < self.least)
