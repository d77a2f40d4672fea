"""Workers as processes of this machine.

A process hears of its parts through a pipe. When the driver is gone, however it ended, the pipe
ends, and the process with it.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from dragoman.cluster.parts.work import Work
from dragoman.cluster.workers.workers import (
    Died,
    Done,
    Event,
    Progress,
    Ready,
    Refused,
    Workers,
)
from dragoman.errors import DragomanError
from dragoman.native.processor import THREADS, share_cores

_WITH_THREADS = ("torch", "obstore", "pyarrow", "ray")
"""Modules with threads of which Python does not know."""


class Processes(Workers):
    """``number`` processes, which share the cores that this one may use."""

    def __init__(self, number: int, cores: int) -> None:
        self.number = number
        self._running: dict[int, tuple[BaseProcess, Connection]] = {}
        self._share = max(1, cores // number), os.environ.get(THREADS)

    def start(self, worker: int, work: Work) -> None:
        forked = _may_fork()
        context = get_context("fork") if forked else get_context("spawn")
        ours, theirs = context.Pipe()
        # A copy of this process holds the drivers' ends of all pipes, and would never see one end.
        foreign = [pipe for _, pipe in self._running.values()] + [ours] if forked else []
        process = context.Process(
            target=_work, args=(theirs, worker, work, self._share, foreign),
            name=f"worker {worker}", daemon=True,
        )  # fmt: skip
        process.start()
        theirs.close()
        self._running[worker] = process, ours

    def give(self, worker: int, part: int) -> None:
        with suppress(OSError):  # it is gone, which ``wait`` says
            self._running[worker][1].send(part)

    def wait(self, seconds: float) -> Sequence[Event]:
        of = {pipe: worker for worker, (_, pipe) in self._running.items()}
        found: list[Event] = []
        for pipe in wait(list(of), seconds):
            assert isinstance(pipe, Connection)
            worker = of[pipe]
            try:
                found.append(pipe.recv())
            except (EOFError, OSError):
                process = self._forget(worker)
                process.join()
                found.append(Died(worker, _ended(process.exitcode)))
        return found

    def stop(self, worker: int) -> None:
        if worker in self._running:
            process = self._forget(worker)
            process.kill()
            process.join()

    def close(self) -> None:
        for worker in list(self._running):
            self.stop(worker)

    def ids(self) -> dict[int, int]:
        """The number of each process in the system."""
        return {worker: one.pid for worker, (one, _) in self._running.items() if one.pid}

    def _forget(self, worker: int) -> BaseProcess:
        process, pipe = self._running.pop(worker)
        pipe.close()
        return process


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        memory = ", as the system does where memory runs out" if name == "SIGKILL" else ""
        return f"it was ended by {name}{memory}"
    return f"it ended with exit code {code}"


def _may_fork() -> bool:
    """Whether a worker can be a copy of this process, which saves it the imports: only where no
    thread could hold a lock at that moment. numpy's own threads are made for copies."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return False
    return sys.modules.keys().isdisjoint(_WITH_THREADS)


def _work(
    pipe: Connection, worker: int, work: Work, share: tuple[int, str | None],
    foreign: Sequence[Connection],
) -> None:  # fmt: skip
    """What a process does. It never returns before the pipe ends or something is wrong."""
    for one in foreign:
        one.close()
    share_cores(*share)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for all of a group: the driver's
    parts: queue.SimpleQueue[int] = queue.SimpleQueue()

    def listen() -> None:
        while True:
            try:
                parts.put(pipe.recv())
            except (EOFError, OSError):
                os._exit(1)

    try:
        threading.Thread(target=listen, daemon=True, name="parts").start()
        tools, way, description = work.begun()
        pipe.send(Ready(worker, way, description))
        while True:
            number = parts.get()
            note, own = work.do(
                number, tools, way, lambda lines: pipe.send(Progress(worker, lines))
            )
            pipe.send(Done(worker, note, own))
    except DragomanError as error:
        pipe.send(Refused(worker, str(error)))
        threading.Event().wait()  # until the driver ends it
    except BrokenPipeError:
        os._exit(1)
    except Exception:
        traceback.print_exc()  # a mistake of ours: the part is tried again, then given up
        raise
