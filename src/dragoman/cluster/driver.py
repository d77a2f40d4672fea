"""This module runs one command's share of a job (``--on local:4``, ``--part 17/500``): its driver
gives parts to workers until all are done, and reports progress.

If a worker dies, its part goes to the end of the queue. Each part is tried ``TRIES`` times, as a
task of Ray is with ``max_task_retries=2``, and is then given up. This process holds no state that
must be kept: the same command continues from the parts that are done.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.cluster.work import (
    Answer,
    Way,
    Work,
    Worker,
    Workers,
    actors,
    agree_on_way,
    processes,
)
from dragoman.stores import Store, open_store, whole_address

logger = logging.getLogger("dragoman.cluster")

TRIES = 3
"""The number of workers that may die with a part before it is given up."""
_STARTS = 3
"""The number of workers that may die one after another before their model is open."""
_TICK = 1.0
_EVERY = 2.0
"""The seconds between two lines of progress on a terminal."""
_EVERY_IN_LOGS = 30.0
_PLACE = re.compile(r"(local|ray)(?::([1-9][0-9]{0,4}))?\Z")
_SHARE = re.compile(r"(\d{1,7})/([1-9]\d{0,6})\Z")

Place = tuple[str, int | None]
"""The kind of the workers, and their number; None for as many as there are cores."""


@dataclass(frozen=True)
class ProgressConsole:
    """The output for people who run a command."""

    write: Callable[[str], object]
    """Writes text as it is, without a line end."""
    terminal: bool

    def say(self, line: str) -> None:
        """Write a line to the console."""
        self.write(f"{line}\n")


@dataclass(eq=False)
class _Begun:
    """A worker that was started, and its state."""

    worker: Worker
    wished: bool
    """True if the work already says how to compute."""
    is_open: bool = False
    part: int | None = None
    """The part that it works on."""


class Driver:
    """Does one command's share of a job. Use it once."""

    def __init__(
        self, command: Command, work: Work, parts: Sequence[int], of_command: Sequence[int],
        *, mixed: bool = False, seen: Callable[[Any], None] = lambda seen: None,
    ) -> None:  # fmt: skip
        """``parts``: the parts to do, of those of the command (``of_command``); ``mixed``: workers
        may compute in different ways; ``seen``: receives what was noted of each part."""
        self._work, (self._number, self._new_worker) = work, workers_at(command.place)
        self._waiting = deque(parts)
        self._total, missing = (sum(map(work.lines, some)) for some in (of_command, parts))
        self._progress = ProgressLine(self._total, self._total - missing, command.console)
        self._mixed, self._seen = mixed, seen
        self._asked: dict[Future[Answer], _Begun] = {}
        """The pending answers, each with its worker."""
        self._workers: list[_Begun] = []
        self._tries: Counter[int] = Counter()
        """Part -> the number of workers that died with it."""
        self._starts = 0
        """The number of workers that died one after another before their model was open."""
        self._stood = self._died = 0
        """The number of parts that another command did meanwhile, and of replaced workers."""
        self._given_up: dict[int, str] = {}
        """The reason for each part that was given up."""

    def run(self) -> None:
        """Run until every part is done. Errors: ``DragomanError`` if another try cannot help, and
        if parts were given up; all workers are ended first."""
        try:
            self._start()  # one alone: the others compute as it does
            while self._waiting or any(begun.part is not None for begun in self._workers):
                answered, _ = wait(self._asked, _TICK, FIRST_COMPLETED)
                for future in answered:
                    self._take(self._asked.pop(future), future)
                self._give()
                self._progress.show(sum(begun.is_open for begun in self._workers))
        finally:
            self._progress.clear()
            for begun in self._workers:
                begun.worker.stop()
        if self._total:
            self._tell()
        if self._given_up:
            work, given_up = self._work, sorted(self._given_up.items())
            named = [f"{work.name(n)} ({work.place(n)}: {how})" for n, how in given_up]
            raise DragomanError(
                f"{plural(len(named), 'part was', 'parts were')} given up; all others are "
                f"complete: {'; '.join(named)}. Run the same command to try them again"
            )

    def _tell(self) -> None:
        """Report in one line what was done."""
        progress = self._progress
        message = f"{plural(progress.fresh, 'line')} in {duration(progress.seconds)}"
        if progress.rate:
            message += f", {in_figures(progress.rate)} lines/s"
        if self._died:
            message += f"; {plural(self._died, 'worker was', 'workers were')} replaced"
        if self._stood:
            message += f"; {plural(self._stood, 'part', 'parts')} completed by other machines"
        progress.say(message)

    # ---- workers

    def _start(self) -> None:
        begun = _Begun(self._new_worker(), wished=self._work.way is not None)
        self._workers.append(begun)
        self._asked[begun.worker.ask(self._work)] = begun

    def _stop(self, begun: _Begun) -> None:
        self._workers.remove(begun)
        begun.worker.stop()

    def _give(self) -> None:
        """Start missing workers, but no more than there are parts, and give parts to idle ones."""
        if self._work.way is not None:
            busy = sum(begun.part is not None for begun in self._workers)
            for _ in range(min(self._number, len(self._waiting) + busy) - len(self._workers)):
                self._start()
        for begun in self._workers:
            if not begun.is_open or begun.part is not None:
                continue
            while self._waiting:
                number = self._waiting.popleft()
                if self._work.store.stat(self._work.name(number)) is not None:
                    self._pass_over(number)
                    continue
                begun.part = number
                self._asked[begun.worker.ask(number)] = begun
                break

    # ---- answers of workers

    def _take(self, begun: _Begun, future: Future[Answer]) -> None:
        if (error := future.exception()) is not None:
            self._lose(begun, error)
            return
        answer = future.result()
        if isinstance(answer, str):
            raise DragomanError(answer)
        number, begun.part = begun.part, None
        if number is None:
            self._begin(begun, *answer)
            return
        seen, is_own = answer
        if is_own:
            self._progress.fresh += self._work.lines(number)
            self._seen(seen)
        else:
            self._pass_over(number)

    def _begin(self, begun: _Begun, way: Way, description: str) -> None:
        agreed = agree_on_way(self._work.store, way)
        self._work = replace(self._work, way=agreed)
        if way != agreed and not self._mixed:
            if not begun.wished:
                self._stop(begun)  # a new worker will compute as agreed
                return
            raise DragomanError(
                f"parts of {self._work.to} were computed in {agreed.words}, but this machine "
                f"uses {way.words}. Rarely, outputs may differ. Use identical machines, or allow "
                "both with --mixed"
            )
        if not any(other.is_open for other in self._workers):
            logger.debug(description)
        self._starts = 0
        begun.is_open = True
        self._progress.begin()

    def _lose(self, begun: _Begun, error: BaseException) -> None:
        logger.debug("a worker was lost", exc_info=error)
        self._stop(begun)
        self._died += 1
        how = str(error).strip().partition("\n")[0][:300]
        if isinstance(error, BrokenExecutor):
            how = "the system ended its process, perhaps because memory ran out"
        number = begun.part
        if number is None:
            self._starts += 1
            if self._starts == _STARTS:
                raise DragomanError(
                    f"{plural(_STARTS, 'worker')} ended before the model was open: {how}"
                )
            if not self._workers:
                self._start()
            return
        self._tries[number] += 1
        name = f"{self._work.name(number)} ({self._work.place(number)})"
        if self._tries[number] < TRIES:
            self._waiting.append(number)
            self._progress.say(f"a worker was lost: {how}. Trying again: {name}")
        else:
            self._given_up[number] = how
            self._progress.say(f"gave up {name} after {plural(TRIES, 'worker')}: {how}")

    def _pass_over(self, number: int) -> None:
        """Skip a part that another command did, and shuffle the rest to avoid its order."""
        self._stood += 1
        self._progress.before += self._work.lines(number)
        rest = list(self._waiting)
        random.shuffle(rest)
        self._waiting = deque(rest)


class ProgressLine:
    """The progress over all parts: a line that a terminal overwrites and a log repeats."""

    def __init__(self, total: int, before: int, console: ProgressConsole) -> None:
        """``total`` is the number of all lines."""
        self._total, self._console = total, console
        self.before = before
        """The lines of parts that were done before, or by another command."""
        self.fresh = 0
        """The lines of parts that this command has done."""
        self._began: float | None = None
        self._told = 0.0
        self._width = 0

    def begin(self) -> None:
        """Start the clock: a model is ready."""
        if self._began is None:
            self._began = self._told = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds since the first model was ready."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def rate(self) -> float:
        """The lines per second of this command."""
        return self.fresh / self.seconds if self.seconds else 0.0

    def show(self, workers: int | None = None) -> None:
        """Show the progress, if it is due. ``workers``: how many work, if there are several."""
        now, terminal = time.monotonic(), self._console.terminal
        if self._began is None or now - self._told < (_EVERY if terminal else _EVERY_IN_LOGS):
            return
        self._told = now
        text = self._text(workers)
        if terminal:
            self._console.write(f"\r{text.ljust(self._width)}")
            self._width = len(text)
        else:
            self._console.say(text)

    def clear(self) -> None:
        """Remove the line from a terminal before other text."""
        if self._width:
            self._console.write(f"\r{' ' * self._width}\r")
            self._width = 0

    def say(self, line: str) -> None:
        """Write a line of other text."""
        self.clear()
        self._console.say(line)

    def _text(self, workers: int | None) -> str:
        """For example: 12,000 of 50,000 lines (24 %), 148 lines/s, 4 min left, 2 workers"""
        done = self.before + self.fresh
        share = 100 * done // self._total if self._total else 100
        parts = [f"{done:,} of {plural(self._total, 'line')} ({share} %)"]
        if self.rate:
            parts += [
                f"{in_figures(self.rate)} lines/s",
                f"{duration((self._total - done) / self.rate)} left",
            ]
        if workers is not None:
            parts.append(plural(workers, "worker"))
        return ", ".join(parts)


def in_figures(rate: float) -> str:
    """Format lines per second with a meaningful precision."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def duration(seconds: float) -> str:
    """Format a duration: 40 s, 12 min, 3 h 20 min, 5 days 2 h"""
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


@dataclass(frozen=True)
class Share:
    """The parts of a command: every ``of``-th, from ``number`` (1 to ``of``) on; with number 0, it
    only makes the plan."""

    number: int = 1
    of: int = 1

    def has(self, part: int) -> bool:
        """True if a part belongs to the share."""
        return part % self.of == self.number - 1


def share_of(given: str | None) -> Share:
    """Parse a share of the parts, such as ``--part 17/500``. Errors: ``DragomanError``."""
    if given is None:
        return Share()
    match = _SHARE.match(given)
    if match is None or int(match[1]) > int(match[2]):
        raise DragomanError(
            f"--part {given}: use PART/PARTS, such as 1/500 to 500/500. 0/500 only creates the plan"
        )
    return Share(int(match[1]), int(match[2]))


def place_of(given: str | None) -> Place:
    """Parse ``--on local:4``; None means one process. Errors: ``DragomanError``."""
    match = _PLACE.match(given or "local:1")
    if match is None:
        raise DragomanError(f"--on {given}: use local, local:4, ray or ray:40")
    return match[1], int(match[2]) if match[2] else None


def workers_at(place: Place) -> Workers:
    """The workers of a place. Errors: ``DragomanError`` if Ray is not installed."""
    name, number = place
    return actors(number) if name == "ray" else processes(number)


class Command:
    """A command in parts: its output, its workers, and its share of the parts."""

    def __init__(self, to: str, on: str | None, part: str | None, console: ProgressConsole) -> None:
        """Read the options. Errors: ``DragomanError`` for invalid options."""
        self.part, self.share, self.place = part, share_of(part), place_of(on)
        self.to = whole_address(to)
        self.console = console

    @cached_property
    def store(self) -> Store:
        """The store to which the parts are written."""
        return open_store(self.to)
