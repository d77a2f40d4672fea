"""Programs take turns: first until they are warm, then timed.

Turns are short, so that a machine with other work slows neighbouring turns alike; a ratio is the
median of the ratios of neighbouring turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

GROWTH = 1.05
"""A program is warm once neither of its last two turns was faster by more than this than the best
turn before them. Slower turns do not count: that is the machine, not the program."""

MOST = 10
"""Turns of warming up, if rates go on rising."""

Turn = Callable[[], float]
"""Does a piece of work -> units of it per second."""


@dataclass(frozen=True)
class Timed:
    """What some programs did, a list for each."""

    warming: list[list[float]]
    """Rates of the turns before the timed ones."""
    rates: list[list[float]]
    """Rates of the timed turns."""

    @property
    def flat(self) -> bool:
        """Whether all were warm when timing began."""
        return all(map(is_flat, self.warming))

    def times_faster(self) -> list[float]:
        """By what factor the first was faster than the last, turn by turn."""
        return [a / b for a, b in zip(self.rates[0], self.rates[-1], strict=True)]

    def faster_by(self) -> float:
        return statistics.median(self.times_faster())


def is_flat(rates: Sequence[float]) -> bool:
    return len(rates) > 2 and max(rates[-2:]) <= GROWTH * max(rates[:-2])


def take_turns(
    programs: Sequence[Turn], timed: int, then: Callable[[], None] = lambda: None
) -> Timed:
    """Warm all up alike, turn by turn, until the last of them is warm; then time them.

    ``then`` is called behind each round of timed turns.
    """
    warming: list[list[float]] = [[] for _ in programs]
    while not all(map(is_flat, warming)) and len(warming[0]) < MOST:
        for program, rates in zip(programs, warming, strict=True):
            rates.append(program())
    found: list[list[float]] = [[] for _ in programs]
    for _ in range(timed):
        for program, rates in zip(programs, found, strict=True):
            rates.append(program())
        then()
    return Timed(warming, found)
