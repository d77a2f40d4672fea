"""A process of this machine that does what it is asked, one thing after another.

It is the only one of a ``ProcessPoolExecutor``: so it is known with what it died. When the process
that asks is gone, however it ended, it ends too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import active_children, get_context, parent_process
from typing import Any, TypeVar

Answer = TypeVar("Answer")

_WITH_THREADS = ("torch", "obstore", "pyarrow", "ray")
"""Modules with threads of which Python does not know."""


class WorkerProcess:
    """One process that runs functions for this one. Call ``stop`` when it is no longer needed."""

    def __init__(self, begin: Callable[..., object], *given: Any, copy: bool = False) -> None:
        """``begin`` is called there first, with ``given``. ``copy``: the process is a copy of this
        one, which saves it the imports (``may_copy``)."""
        context = get_context("fork" if copy else "spawn")
        before = set(active_children())
        self._pool = ProcessPoolExecutor(1, context, _begin, (begin, given))
        self._pool.submit(os.getpid)  # the first thing to do starts the process
        self._processes = set(active_children()) - before

    def ask(self, do: Callable[..., Answer], *given: Any) -> Future[Answer]:
        """Call ``do``, a function of a module, there. The future has what it returns, or
        ``BrokenExecutor`` if the process has died."""
        try:
            return self._pool.submit(do, *given)
        except BrokenExecutor as error:  # it died between two things
            lost = Future[Answer]()
            lost.set_exception(error)
            return lost

    def stop(self) -> None:
        """End it, whatever it is at."""
        for process in self._processes:
            process.kill()
        self._pool.shutdown(cancel_futures=True)


def may_copy() -> bool:
    """True if a process can be a copy of this one: only if no thread could hold a lock at that
    moment. numpy's own threads are made for copies."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return False
    return sys.modules.keys().isdisjoint(_WITH_THREADS)


def _begin(begin: Callable[..., object], given: tuple[Any, ...]) -> None:
    begin(*given)
    # A terminal interrupts the whole group: the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "another process has started the worker"
    parent.join()
    os._exit(1)
