"""Gives parts to workers until all stand.

A worker that dies loses one part, which goes to the end of the queue. Each part is tried
``TRIES`` times, as a task of Ray is with ``max_task_retries=2``, and is then given up. Nothing that
must be kept lies in this process: who gives the same command again goes on from the parts that
stand.
"""

from __future__ import annotations

import logging
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.cluster.parts.job import Work
from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.standing import agreed_way
from dragoman.cluster.progress import ProgressLine, duration, in_figures
from dragoman.cluster.workers import Answer, Workers

logger = logging.getLogger("dragoman.cluster")

TRIES = 3
"""Workers that a part may cost before it is given up."""
_STARTS = 3
"""Workers that may die one after another before their model is open."""
_TICK = 1.0


class Driver:
    """One command's share of a job. Use it once."""

    def __init__(
        self, work: Work, workers: Workers, parts: Sequence[int], of_command: Sequence[int],
        say: Callable[[str], None], write: Callable[[str], object], *, terminal: bool,
        mixed: bool = False, seen: Callable[[Any], None] = lambda seen: None,
    ) -> None:  # fmt: skip
        """``parts``: those that are to be done, of all that the command is for; ``say``: writes a
        line for people; ``write``: text as it is; ``seen``: gets what was seen in each part."""
        self._work, self._workers = work, workers
        self._waiting = deque(parts)
        self._total, missing = (sum(map(work.lines, some)) for some in (of_command, parts))
        self._progress = ProgressLine(self._total, self._total - missing, write, terminal)
        self._say, self._mixed, self._seen = say, mixed, seen
        self._asked: dict[Future[Answer], int] = {}
        """What is under way -> its worker."""
        self._busy: dict[int, int] = {}
        """Worker -> its part."""
        self._ready: set[int] = set()
        self._starting: set[int] = set()
        self._wished: set[int] = set()
        self._tries: Counter[int] = Counter()
        """Part -> workers that died with it."""
        self._starts = 0
        self._started = 0
        self._stood = self._died = 0
        """Parts that somebody else did meanwhile, and workers that were replaced."""
        self._given_up: dict[int, str] = {}
        """Part -> why."""

    def run(self) -> None:
        """Until every part stands. Errors: ``DragomanError`` where going on cannot help, and where
        parts were given up; all workers are ended first."""
        try:
            self._start()  # one alone: how it computes is how all do
            while self._waiting or self._busy:
                answered, _ = wait(self._asked, _TICK, FIRST_COMPLETED)
                for future in answered:
                    self._take(self._asked.pop(future), future)
                self._give()
                self._progress.show(len(self._ready))
        finally:
            self._progress.clear()
            self._workers.close()
        if self._total:
            self._tell()
        if self._given_up:
            work, given_up = self._work, sorted(self._given_up.items())
            named = [f"{work.name(n)} ({work.place(n)}: {how})" for n, how in given_up]
            raise DragomanError(
                f"{plural(len(named), 'part was', 'parts were')} given up, and all others stand: "
                f"{'; '.join(named)}. The same command tries them again"
            )

    def _tell(self) -> None:
        """What was done, in one line."""
        progress = self._progress
        told = f"{plural(progress.fresh, 'line')} in {duration(progress.seconds)}"
        if progress.rate:
            told += f", {in_figures(progress.rate)} lines/s"
        if self._died:
            told += f"; {plural(self._died, 'worker was', 'workers were')} replaced"
        if self._stood:
            told += f"; {plural(self._stood, 'part', 'parts')} somebody else did meanwhile"
        self._say(told)

    # ---- workers

    def _start(self) -> None:
        worker = self._started
        self._started += 1
        self._starting.add(worker)
        if self._work.way is not None:
            self._wished.add(worker)
        self._asked[self._workers.start(worker, self._work)] = worker

    def _fill(self) -> None:
        """As many workers as there are to be, and no more than there are parts."""
        wanted = min(self._workers.number, len(self._waiting) + len(self._busy))
        if self._ready or self._work.way is not None:
            for _ in range(wanted - len(self._ready) - len(self._starting)):
                self._start()

    def _give(self) -> None:
        self._fill()
        for worker in sorted(self._ready - self._busy.keys()):
            while self._waiting:
                number = self._waiting.popleft()
                if self._work.store.stat(self._work.name(number)) is not None:
                    self._pass_over(number)
                    continue
                self._busy[worker] = number
                self._asked[self._workers.give(worker, number)] = worker
                break

    # ---- what they answer

    def _take(self, worker: int, future: Future[Answer]) -> None:
        if (error := future.exception()) is not None:
            self._lose(worker, error)
            return
        answer = future.result()
        if isinstance(answer, str):
            raise DragomanError(answer)
        found, more = answer
        if isinstance(found, Way):
            self._begin(worker, found, str(more))
            return
        number = self._busy.pop(worker)
        if more:
            self._progress.add(found.lines)
            self._seen(found.seen)
        else:
            self._pass_over(number)

    def _begin(self, worker: int, way: Way, description: str) -> None:
        self._starting.discard(worker)
        agreed = agreed_way(self._work.store, way)
        self._work = self._work.with_way(agreed)
        if way != agreed and not self._mixed:
            if worker not in self._wished:
                self._workers.stop(worker)  # another will compute as is agreed
                return
            raise DragomanError(
                f"parts of {self._work.to} were computed in {agreed.words}, and here it would be "
                f"{way.words}: in rare ties the output may differ. Work on machines that are "
                "alike, or allow both: --mixed"
            )
        if not self._ready:
            logger.debug(description)
        self._starts = 0
        self._ready.add(worker)
        self._progress.begin()

    def _lose(self, worker: int, error: BaseException) -> None:
        logger.debug("a worker is lost", exc_info=error)
        self._workers.stop(worker)
        self._ready.discard(worker)
        number = self._busy.pop(worker, None)
        self._died += 1
        how = str(error).strip().partition("\n")[0][:300]
        if isinstance(error, BrokenExecutor):
            how = "its process was ended, as the system does where memory runs out"
        if number is None:
            self._starting.discard(worker)
            self._starts += 1
            if self._starts == _STARTS:
                raise DragomanError(
                    f"{plural(_STARTS, 'worker')} ended before the model was open: {how}"
                )
            if not self._ready and not self._starting:
                self._start()
            return
        self._tries[number] += 1
        name = self._work.described(number)
        self._progress.clear()
        if self._tries[number] < TRIES:
            self._waiting.append(number)
            self._say(f"a worker is lost: {how}. Once more: {name}")
        else:
            self._given_up[number] = how
            self._say(f"given up after {plural(TRIES, 'worker')}: {name}: {how}")

    def _pass_over(self, number: int) -> None:
        """Somebody else works on the same parts: take the rest in another order than theirs."""
        self._stood += 1
        self._progress.stood(self._work.lines(number))
        rest = list(self._waiting)
        random.shuffle(rest)
        self._waiting = deque(rest)
