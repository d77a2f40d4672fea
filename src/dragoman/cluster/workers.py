"""Who does parts: processes of this machine, or actors of Ray on the machines of its cluster.

What a worker is asked comes back as a future. One that has an exception in place of an answer is
that of a worker that is lost. Ray runs its actors and says which are gone; which parts stand, the
store alone knows, so the loss of Ray's head loses nothing.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from dragoman.base.errors import DragomanError, install
from dragoman.base.workers import WorkerProcess, may_copy
from dragoman.cluster.work import Way, Work
from dragoman.native.processor import THREADS, cores, share_cores

Answer = tuple[Any, Any] | str
"""How a worker computes, and a line for people; or what was seen in a part, and whether it is this
worker's that stands; or the message of an error that no other try can mend."""


class Hand:
    """The worker itself, where it runs."""

    def __init__(self) -> None:
        self._work: Work | None = None
        self._tools: Any = None
        self._way = Way()

    def answer(self, asked: Work | int) -> Answer:
        """Open the model of some work, or then do a part of it."""
        try:
            if isinstance(asked, Work):
                self._work = asked
                self._tools, self._way, description = asked.begun()
                return self._way, description
            assert self._work is not None, "work comes first"
            return self._work.do(asked, self._tools, self._way)
        except DragomanError as error:
            return str(error)


class Worker(ABC):
    """One process somewhere, with a model of its own."""

    @abstractmethod
    def ask(self, asked: Work | int) -> Future[Answer]:
        """Let it open the model of some work; then, do a part."""

    @abstractmethod
    def stop(self) -> None:
        """End it, whatever it is at."""


Workers = tuple[int, Callable[[], Worker]]
"""The number of those that work at once, and a function that starts another."""


class LocalWorker(Worker):
    """A process of this machine, which uses some of the cores that this one may use."""

    def __init__(self, cores: int) -> None:
        self._process = WorkerProcess(share_cores, cores, os.environ.get(THREADS), copy=may_copy())

    def ask(self, asked: Work | int) -> Future[Answer]:
        return self._process.ask(_answer, asked)

    def stop(self) -> None:
        self._process.stop()


_hand = Hand()
"""The hand of this process, if it is a worker."""


def _answer(asked: Work | int) -> Answer:
    return _hand.answer(asked)


def processes(number: int | None) -> Workers:
    """Processes that share the cores; None: one for each."""
    wanted = number or cores()
    return wanted, lambda: LocalWorker(max(1, cores() // wanted))


class RayWorker(Worker):
    """An actor of one core."""

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
    """Runs elsewhere, on one core."""

    def __init__(self) -> None:
        share_cores(1, None)
        super().__init__()


def actors(number: int | None) -> Workers:
    """Actors of Ray; None: one for each core of its cluster. Errors: ``DragomanError`` without
    Ray."""
    try:
        import ray
    except ImportError:
        raise DragomanError(
            f"Ray is not installed: {install('ray')}. Without it: --on local:4"
        ) from None
    if not ray.is_initialized():
        # A cluster that RAY_ADDRESS names, or one of this machine alone.
        ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    there: Any = ray
    number = number or max(1, int(there.cluster_resources().get("CPU", 1)))
    return number, lambda: RayWorker(there)
