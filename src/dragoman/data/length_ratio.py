"""How long translations are for their sources, as Gale and Church (1993) model it.

Each source token brings c target tokens on average, with a variance that grows with the length, so

    δ = (t − c s) / √s

of s source and t target tokens is spread in the same way for short sentences and long ones. Its
spread is taken from the pairs themselves: what lies outside of all but one in a thousand of them is
no usual length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

_TAIL = 0.0005
"""Share of training pairs beyond each limit."""
_FEWEST = 2000
"""Pairs that are needed to know so small a share."""
_MOST = 1_000_000
"""Pairs that are looked at."""

Lengths = npt.NDArray[np.int32]


@dataclass(frozen=True)
class LengthRatio:
    """c, and the limits of δ. In tokens, end symbols not counted."""

    ratio: float
    least: float
    greatest: float

    @staticmethod
    def step(pairs: int) -> int:
        """Every so many pairs are looked at."""
        return max(1, -(-pairs // _MOST))

    @classmethod
    def of(cls, source: Lengths, target: Lengths) -> Self | None:
        """Of the lengths of training pairs, every ``step``-th of them; None of too few."""
        s, t = (lengths.astype(np.float64) for lengths in (source, target))
        s, t = s[s > 0], t[s > 0]
        if len(s) < _FEWEST:
            return None
        ratio = float(t.sum() / s.sum())
        least, greatest = np.quantile((t - ratio * s) / np.sqrt(s), [_TAIL, 1 - _TAIL])
        return cls(round(ratio, 4), round(float(least), 4), round(float(greatest), 4))

    def judge(self, source: int, target: int) -> int:
        """-1 for a translation that is unusually short, 1 for an unusually long one, else 0."""
        if source == 0:
            return 0
        delta = (target - self.ratio * source) / source**0.5
        return int(delta > self.greatest) - int(delta < self.least)

    def to_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, note: Mapping[str, Any]) -> Self:
        """What ``to_dict`` wrote."""
        return cls(note["ratio"], note["least"], note["greatest"])
