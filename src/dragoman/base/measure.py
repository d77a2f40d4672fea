"""A score: what it is called, which values are better, and how it is written for people.

Scores are kept as they are computed. Only what people read is scaled, by ``Measure.text``; it is
the same in a terminal, on a page and in a card. ``base/task.py`` says which scores a task has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dragoman.base.wording import decimals

Better = Literal["lower", "higher"]

_LARGE = 1e6
"""Written with a power of ten from here on."""


@dataclass(frozen=True)
class Measure:
    """One kind of score, and how its values are written."""

    called: str
    better: Better
    digits: int = 2
    """The number of decimal places of written values."""
    times: float = 1.0
    """The factor by which values are multiplied when written: 100 for a share in percent."""
    percent: bool = False

    @property
    def unit(self) -> str:
        """The unit that follows the number; empty if it has none."""
        return " %" if self.percent else ""

    def number(self, value: float) -> str:
        """A value, scaled, without its unit: for columns whose head says it."""
        scaled = value * self.times
        if math.isfinite(scaled) and abs(scaled) >= _LARGE:
            return f"{scaled:.1e}"
        return decimals(scaled, self.digits)

    def text(self, value: float) -> str:
        """A value, scaled and with its unit."""
        return f"{self.number(value)}{self.unit}"

    def difference(self, value: float) -> str:
        """A difference between two values, scaled and with its sign."""
        return f"{'+' if value > 0 else ''}{self.number(value)}"

    @property
    def head(self) -> str:
        """The heading of a column of its numbers."""
        return f"{self.called}, %" if self.percent else self.called

    def is_better(self, value: float, other: float) -> bool:
        """True if ``value`` is better than ``other``."""
        return value < other if self.better == "lower" else value > other


BLEU = Measure("BLEU", "higher")
CHRF = Measure("chrF", "higher")
LOSS = Measure("loss", "lower", digits=3)
PERPLEXITY = Measure("perplexity", "lower")
WER = Measure("WER", "lower", percent=True)
CER = Measure("CER", "lower", percent=True)
BITS_PER_BYTE = Measure("bits per byte", "lower", digits=3)


def percent(called: str, *, share: bool = False) -> Measure:
    """A measure in percent; more is better. ``share``: its values are from 0 to 1, not to 100."""
    return Measure(called, "higher", digits=1, times=100.0 if share else 1.0, percent=True)


SHARE = percent("", share=True)
"""A share as a measure without a name."""


def score_table(scores: Mapping[str, tuple[Measure, float]]) -> str:
    """A line for each score, its number under those of the others."""
    rows = [
        (measure.called, measure.number(value), measure.unit) for measure, value in scores.values()
    ]
    wide = max((len(called) for called, _, _ in rows), default=0)
    right = max((len(number) for _, number, _ in rows), default=0)
    return "\n".join(f"{called:<{wide}}  {number:>{right}}{unit}" for called, number, unit in rows)


_LARGEST = 700.0
"""exp of more is no float."""


def perplexity(loss: float) -> float:
    """exp of ``loss``, the mean of -log P of what was predicted, in nats a token; finite, whatever
    a model that diverges makes of it."""
    return math.exp(min(loss, _LARGEST))
