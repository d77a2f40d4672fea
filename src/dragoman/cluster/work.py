"""This module defines work that is done in parts, makes all workers compute in the same way, and
starts workers: processes of this machine, or actors of Ray on the machines of its cluster.

The answer of a worker is a future; if it has an exception, the worker is lost. Ray runs
its actors and reports lost ones; only the store knows which parts are done, so the loss of Ray's
head loses nothing.
"""

from __future__ import annotations

import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, partial
from typing import Any, NamedTuple

from dragoman.base.errors import DragomanError, needing
from dragoman.base.workers import WorkerProcess, may_copy
from dragoman.native.processor import THREADS, cores, share_cores
from dragoman.stores import Store, StoreError, open_store

NOTES = "_dragoman"
"""The folder of notes next to the parts: programs that read folders of data skip such names."""
_WAY = f"{NOTES}/way.json"
_TRIAL = f"{NOTES}/trial-"
Answer = tuple[Any, Any] | str
"""A way and a line for people; or the notes of a part and whether this worker's output was
committed; or the message of an error that another try cannot fix."""


@dataclass(frozen=True)
class Way:
    """The way in which a worker computes. Results of two ways may differ in rare ties."""

    precision: str = "fp32"
    level: str = ""
    """The instruction set of the kernels; empty for plain torch."""
    dragoman: str = ""
    torch: str = ""

    @property
    def words(self) -> str:
        """A description of the way for messages."""
        by = f"native kernels for {self.level}" if self.level else "plain torch"
        return f"{self.precision} by {by}, dragoman {self.dragoman}, torch {self.torch}"


def agree_on_way(store: Store, own: Way) -> Way:
    """The way in which all workers compute: the stored one, or ``own``, which is stored now."""
    store.create(_WAY, json.dumps(asdict(own)).encode())
    way = way_that_stands(store)
    assert way is not None, "it was created if it was not there"
    return way


def way_that_stands(store: Store) -> Way | None:
    """The stored way, or None before the first worker is ready."""
    content = store.content(_WAY)
    if content is None:
        return None
    try:
        return Way(**json.loads(content))
    except (ValueError, TypeError) as error:
        raise StoreError(f"{store.place(_WAY)} is damaged: {error!r}") from error


def check_conditional(store: Store) -> None:
    """Errors: ``StoreError`` if the store accepts a second write of one name, so that a part could
    be written twice."""
    name = f"{_TRIAL}{os.urandom(8).hex()}"
    store.create(name, b"first")
    refused = not store.create(name, b"second")
    stands = store.content(name)
    store.remove(name)
    if not refused or stands != b"first":
        raise StoreError(
            f"{store.address} does not support conditional writes (If-None-Match), so two "
            "workers could write the same part. Use S3, GCS, Azure or a current MinIO"
        )


@dataclass(frozen=True)
class Work(ABC):
    """Parts that are numbered, each committed once under a name of its own in a store. All workers
    get the same object, which is picklable."""

    to: str
    """The address of the store of parts."""
    way: Way | None = field(default=None, kw_only=True)
    """The way in which all workers must compute; None before the first has begun."""

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @cached_property
    def store(self) -> Store:
        """The store of the parts; each process opens it for itself."""
        return open_store(self.to)

    @abstractmethod
    def name(self, number: int) -> str:
        """The object whose presence in the store shows that the part is done."""

    @abstractmethod
    def place(self, number: int) -> str:
        """The input of a part, for messages."""

    @abstractmethod
    def lines(self, number: int) -> int:
        """The number of lines of a part, for the progress."""

    @abstractmethod
    def begin(self) -> tuple[Any, Way, str]:
        """Begin in a worker: returns its tools, its way, and a line for people."""

    @abstractmethod
    def do(self, number: int, tools: Any, way: Way) -> tuple[Any, bool]:
        """Do a part and commit it. Returns what was noted of it, and True if this output was the
        first to be committed. Errors: ``DragomanError``."""


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


class Worker(NamedTuple):
    """A process somewhere, with a model of its own."""

    ask: Callable[[Work | int], Future[Answer]]
    """Opens the model of some work, or does a part of it."""
    stop: Callable[[], None]
    """Ends the process, whatever it does."""


Workers = tuple[int, Callable[[], Worker]]
"""The number of workers at a time, and a function that starts one."""


_hand = Hand()
"""The worker's state in this process, if it is a worker."""


def _answer(asked: Work | int) -> Answer:
    return _hand.answer(asked)


def local_worker(cores: int) -> Worker:
    """A process of this machine on some of the cores that this process may use."""
    process = WorkerProcess(share_cores, cores, os.environ.get(THREADS), copy=may_copy())
    return Worker(partial(process.ask, _answer), process.stop)


def processes(number: int | None) -> Workers:
    """Processes that share the cores; None: one for each core."""
    wanted = number or cores()
    return wanted, lambda: local_worker(max(1, cores() // wanted))


class _Actor(Hand):
    """The worker's code in an actor, on one core."""

    def __init__(self) -> None:
        share_cores(1, None)
        super().__init__()


def _ray_worker(ray: Any) -> Worker:
    """An actor of Ray on one core."""
    made = ray.remote(num_cpus=1, max_restarts=0)(_Actor)
    actor = made.options(runtime_env={"env_vars": {THREADS: "1"}}).remote()
    return Worker(lambda asked: actor.answer.remote(asked).future(), lambda: ray.kill(actor))


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
    return number, lambda: _ray_worker(there)
