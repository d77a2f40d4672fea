"""Workers as actors of Ray, on the machines of its cluster.

Ray runs them and says which are gone; which parts stand, the store alone knows, so the loss of
Ray's head loses nothing.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from typing import Any

from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.part import PartNote
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
from dragoman.extras import install
from dragoman.native.processor import THREADS, share_cores


class Actors(Workers):
    """``number`` actors of one core each; None: one for each core of the cluster."""

    def __init__(self, number: int | None) -> None:
        """Errors: ``DragomanError`` without Ray."""
        try:
            import ray
        except ImportError:
            raise DragomanError(
                f"Ray is not installed: {install('ray')}. Without it: --on local:4"
            ) from None
        self._ray: Any = ray
        if not self._ray.is_initialized():
            # A cluster that RAY_ADDRESS names, or one of this machine alone.
            self._ray.init(
                log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False
            )
        self.number = number or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._actors: dict[int, Any] = {}
        self._asked: dict[Any, int] = {}
        """What is under way -> its worker."""

    def start(self, worker: int, work: Work) -> None:
        made = self._ray.remote(num_cpus=1, max_restarts=0)(_Actor)
        actor = made.options(runtime_env={"env_vars": {THREADS: "1"}}).remote()
        self._actors[worker] = actor
        self._asked[actor.open.remote(work)] = worker

    def give(self, worker: int, part: int) -> None:
        self._asked[self._actors[worker].do.remote(part)] = worker

    def wait(self, seconds: float) -> Sequence[Event]:
        if not self._asked:
            time.sleep(seconds)
            return []
        answered, _ = self._ray.wait(
            list(self._asked), num_returns=1, timeout=seconds, fetch_local=True
        )
        found: list[Event] = []
        for one in answered:
            worker = self._asked.pop(one)
            try:
                found += _events(worker, self._ray.get(one))
            except self._ray.exceptions.RayError as error:
                self._actors.pop(worker, None)
                told = str(error).strip().partition("\n")[0]
                found.append(Died(worker, f"Ray says: {told[:300]}"))
        return found

    def stop(self, worker: int) -> None:
        actor = self._actors.pop(worker, None)
        if actor is not None:
            self._asked = {one: of for one, of in self._asked.items() if of != worker}
            self._ray.kill(actor)

    def close(self) -> None:
        for worker in list(self._actors):
            self.stop(worker)


_Answer = tuple[Way, str] | tuple[PartNote, bool] | str


def _events(worker: int, answer: _Answer) -> list[Event]:
    if isinstance(answer, str):
        return [Refused(worker, answer)]
    first, second = answer
    if isinstance(first, Way):
        return [Ready(worker, first, str(second))]
    return [Progress(worker, first.lines), Done(worker, first, bool(second))]


class _Actor:
    """Runs elsewhere. Errors that no other try can mend are handed back as their message."""

    def __init__(self) -> None:
        share_cores(1, None)
        self._work: Work | None = None
        self._tools: Any = None
        self._way = Way()

    def open(self, work: Work) -> _Answer:
        try:
            self._work = work
            self._tools, self._way, description = work.begun()
        except DragomanError as error:
            return str(error)
        return self._way, f"{description}; process {os.getpid()} of Ray"

    def do(self, part: int) -> _Answer:
        assert self._work is not None, "open comes first"
        try:
            return self._work.do(part, self._tools, self._way)
        except DragomanError as error:
            return str(error)
