"""Workers as actors of Ray, on the machines of its cluster.

Ray runs them and says which are gone; which parts stand, the store alone knows, so the loss of
Ray's head loses nothing.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

from dragoman.base.errors import DragomanError, install
from dragoman.cluster.parts.job import Work
from dragoman.cluster.workers import Answer, Hand, Workers
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
        self._running = {}

    def start(self, worker: int, work: Work) -> Future[Answer]:
        made = self._ray.remote(num_cpus=1, max_restarts=0)(_Actor)
        actor = made.options(runtime_env={"env_vars": {THREADS: "1"}}).remote()
        self._running[worker] = actor
        opened: Future[Answer] = actor.open.remote(work).future()
        return opened

    def give(self, worker: int, part: int) -> Future[Answer]:
        done: Future[Answer] = self._running[worker].do.remote(part).future()
        return done

    def stop(self, worker: int) -> None:
        if (actor := self._running.pop(worker, None)) is not None:
            self._ray.kill(actor)


class _Actor(Hand):
    """Runs elsewhere, on one core."""

    def __init__(self) -> None:
        share_cores(1, None)
        super().__init__()
