"""Who does parts: processes of this machine, or actors of Ray (``actors.py``).

What a worker is asked comes back as a future. One that has an exception in place of an answer is
that of a worker that is lost. Each process is the only one of a ``ProcessPoolExecutor``: so it is
known with which part it died. When the driver is gone, however it ended, its processes end too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.cluster.parts.job import Work
from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.part import PartNote
from dragoman.native.processor import THREADS, share_cores

Answer = tuple[Way, str] | tuple[PartNote, bool] | str
"""How a worker computes, and a line for people; or what is noted of a part, and whether it is this
worker's that stands; or the message of an error that no other try can mend."""


class Workers(ABC):
    """Processes somewhere, each with a model of its own."""

    number: int
    """How many work at once."""
    _running: dict[int, Any]
    """By their numbers."""

    @abstractmethod
    def start(self, worker: int, work: Work) -> Future[Answer]:
        """Begin another, which opens its model."""

    @abstractmethod
    def give(self, worker: int, part: int) -> Future[Answer]:
        """Let a worker that is ready do a part."""

    @abstractmethod
    def stop(self, worker: int) -> None:
        """End one, whatever it is at, if it is there yet."""

    def close(self) -> None:
        """End all."""
        for worker in list(self._running):
            self.stop(worker)


class Hand:
    """The worker itself, where it runs."""

    def __init__(self) -> None:
        self._work: Work | None = None
        self._tools: Any = None
        self._way = Way()

    def open(self, work: Work) -> Answer:
        """Open the model."""
        try:
            self._work = work
            self._tools, self._way, description = work.begun()
        except DragomanError as error:
            return str(error)
        return self._way, description

    def do(self, part: int) -> Answer:
        """Do a part, once the model is open."""
        assert self._work is not None, "open comes first"
        try:
            return self._work.do(part, self._tools, self._way)
        except DragomanError as error:
            return str(error)


_WITH_THREADS = ("torch", "obstore", "pyarrow", "ray")
"""Modules with threads of which Python does not know."""
_hand = Hand()
"""That of this process, where it is a worker."""


class Processes(Workers):
    """``number`` processes, which share the cores that this one may use."""

    def __init__(self, number: int, cores: int) -> None:
        self.number = number
        self._running: dict[int, tuple[ProcessPoolExecutor, set[BaseProcess]]] = {}
        self._share = max(1, cores // number), os.environ.get(THREADS)

    def start(self, worker: int, work: Work) -> Future[Answer]:
        context = get_context("fork" if _may_fork() else "spawn")
        before = set(active_children())
        pool = ProcessPoolExecutor(1, context, _begin, self._share)
        opened = pool.submit(_open, work)
        self._running[worker] = pool, set(active_children()) - before
        return opened

    def give(self, worker: int, part: int) -> Future[Answer]:
        try:
            return self._running[worker][0].submit(_do, part)
        except BrokenExecutor as error:  # it died between two parts
            lost = Future[Answer]()
            lost.set_exception(error)
            return lost

    def stop(self, worker: int) -> None:
        if worker in self._running:
            pool, processes = self._running.pop(worker)
            for process in processes:
                process.kill()
            pool.shutdown(cancel_futures=True)


def _may_fork() -> bool:
    """Whether a worker can be a copy of this process, which saves it the imports: only where no
    thread could hold a lock at that moment. numpy's own threads are made for copies."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return False
    return sys.modules.keys().isdisjoint(_WITH_THREADS)


def _begin(cores: int, threads: str | None) -> None:
    """What a process begins with."""
    share_cores(cores, threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for all of a group: the driver's
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    driver = parent_process()
    assert driver is not None, "a worker has been started by its driver"
    driver.join()
    os._exit(1)


def _open(work: Work) -> Answer:
    return _hand.open(work)


def _do(part: int) -> Answer:
    return _hand.do(part)
