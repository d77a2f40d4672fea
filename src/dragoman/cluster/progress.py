"""How far all parts are, how fast, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable

from dragoman.base.wording import plural

_EVERY = 2.0
_EVERY_IN_LOGS = 30.0


class ProgressLine:
    """One line, written anew on a terminal, and now and then into a log."""

    def __init__(self, total: int, before: int, write: Callable[[str], object], terminal: bool):
        """``total``: lines; ``before``: those of parts that stood already."""
        self._total, self._done = total, before
        self._write, self._terminal = write, terminal
        self.fresh = 0
        """Lines of parts that this command has done."""
        self._began: float | None = None
        self._told = 0.0
        self._width = 0

    def begin(self) -> None:
        """Measure from now on: a model is ready."""
        if self._began is None:
            self._began = self._told = time.monotonic()

    def add(self, lines: int) -> None:
        """Lines of a part that was done."""
        self.fresh += lines

    def stood(self, lines: int) -> None:
        """Lines of a part that somebody else has done."""
        self._done += lines

    @property
    def seconds(self) -> float:
        """Since the first model was ready."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def rate(self) -> float:
        """Lines a second, of this command."""
        return self.fresh / self.seconds if self.seconds else 0.0

    def show(self, workers: int) -> None:
        """If it is time again."""
        now = time.monotonic()
        if self._began is None or now - self._told < (_EVERY if self._terminal else _EVERY_IN_LOGS):
            return
        self._told = now
        text = self.text(workers)
        if self._terminal:
            self._write(f"\r{text.ljust(self._width)}")
            self._width = len(text)
        else:
            self._write(f"{text}\n")

    def clear(self) -> None:
        """Make room for other text on a terminal."""
        if self._width:
            self._write(f"\r{' ' * self._width}\r")
            self._width = 0

    def text(self, workers: int) -> str:
        """12,000 of 50,000 lines (24 %), 148 lines/s, 4 min left, 2 workers"""
        done = self._done + self.fresh
        share = 100 * done // self._total if self._total else 100
        parts = [f"{done:,} of {plural(self._total, 'line')} ({share} %)"]
        if self.rate:
            parts += [
                f"{in_figures(self.rate)} lines/s",
                f"{duration((self._total - done) / self.rate)} left",
            ]
        return ", ".join([*parts, plural(workers, "worker")])


def in_figures(rate: float) -> str:
    """Lines a second, as exact as it can be meant."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def duration(seconds: float) -> str:
    """40 s, 12 min, 3 h 20 min, 5 days 2 h"""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} days {hours} h" if hours else f"{days} days"
