"""Workers: processes of this machine, or actors of Ray on the machines of its cluster.

The answer of a worker is a future; one with an exception means that the worker is lost. Ray runs
its actors and reports lost ones; only the store knows which parts are done, so the loss of Ray's
head loses nothing.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from dragoman.base.errors import DragomanError, needing
from dragoman.base.workers import WorkerProcess, may_copy
from dragoman.cluster.work import Way, Work
from dragoman.native.processor import THREADS, cores, share_cores

Answer = tuple[Any, Any] | str
"""A way and a line for people; or the notes of a part and whether this worker's output was
committed; or the message of an error that another try cannot fix."""


class Hand:
    """The code of a worker, in its own process."""

    def __init__(self) -> None:
        self._work: Work | None = None
        self._tools: Any = None
        self._way = Way()

    def answer(self, asked: Work | int) -> Answer:
        """Open the model of some work, or do a part of it."""
        try:
            if isinstance(asked, Work):
                self._work = asked
                self._tools, self._way, description = asked.begin()
                return self._way, description
            assert self._work is not None, "work comes first"
            return self._work.do(asked, self._tools, self._way)
        except DragomanError as error:
            return str(error)


class Worker(ABC):
    """A process somewhere, with a model of its own."""

    @abstractmethod
    def ask(self, asked: Work | int) -> Future[Answer]:
        """Open the model of some work, or do a part of it."""

    @abstractmethod
    def stop(self) -> None:
        """End the process, whatever it does."""


Workers = tuple[int, Callable[[], Worker]]
"""The number of workers at a time, and a function that starts one."""


class LocalWorker(Worker):
    """A process of this machine on some of the cores that this process may use."""

    def __init__(self, cores: int) -> None:
        self._process = WorkerProcess(share_cores, cores, os.environ.get(THREADS), copy=may_copy())

    def ask(self, asked: Work | int) -> Future[Answer]:
        return self._process.ask(_answer, asked)

    def stop(self) -> None:
        self._process.stop()


_hand = Hand()
"""The worker's state in this process, if it is a worker."""


def _answer(asked: Work | int) -> Answer:
    return _hand.answer(asked)


def processes(number: int | None) -> Workers:
    """Processes that share the cores; None: one for each core."""
    wanted = number or cores()
    return wanted, lambda: LocalWorker(max(1, cores() // wanted))


class RayWorker(Worker):
    """A worker that is a Ray actor on one core."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        made = ray.remote(num_cpus=1, max_restarts=0)(_Actor)
        self._actor = made.options(runtime_env={"env_vars": {THREADS: "1"}}).remote()

    def ask(self, asked: Work | int) -> Future[Answer]:
        answered: Future[Answer] = self._actor.answer.remote(asked).future()
        return answered

    def stop(self) -> None:
        self._ray.kill(self._actor)


class _Actor(Hand):
    """The worker's code in an actor, on one core."""

    def __init__(self) -> None:
        share_cores(1, None)
        super().__init__()


def actors(number: int | None) -> Workers:
    """Actors of Ray; None: one for each core of its cluster. Errors: ``DragomanError`` without
    Ray."""
    with needing("ray", "Ray is not installed", then=". Or use --on local"):
        import ray
    if not ray.is_initialized():
        # This uses the cluster that RAY_ADDRESS names, or starts one on this machine.
        ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    there: Any = ray
    number = number or max(1, int(there.cluster_resources().get("CPU", 1)))
    return number, lambda: RayWorker(there)
