"""Workers as processes of this machine, each the only one of a ``ProcessPoolExecutor``: so it is
known with which part a process died. When the driver is gone, however it ended, they end too."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess

from dragoman.cluster.parts.job import Work
from dragoman.cluster.workers import Answer, Hand, Workers
from dragoman.native.processor import THREADS, share_cores

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

    def close(self) -> None:
        for worker in list(self._running):
            self.stop(worker)


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
