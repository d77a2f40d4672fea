"""How long work takes on cores of its own, timed on cores that others use too."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path


class Stopwatch:
    """Starts when it is made; ``seconds`` is what the work since then would take undisturbed.

    That is wall-clock time less the time in which threads of this process were ready to run and had
    to wait for a core (Linux counts it for each thread): of the calling thread, and of the one that
    waited most among the others, for which the calling one may have waited in turn. It is no less
    than processor time shared out evenly. Where the kernel does not count, it is wall-clock time.
    """

    def __init__(self) -> None:
        self._waited = _waited()
        self._processor = time.process_time()
        self._wall = time.perf_counter()

    def seconds(self, threads: int) -> float:
        """``threads``: on how many the work was done."""
        wall = time.perf_counter() - self._wall
        processor = time.process_time() - self._processor
        now = _waited()
        if not now:
            return wall
        waited = {thread: one - self._waited.get(thread, 0) for thread, one in now.items()}
        own = waited.pop(threading.get_native_id(), 0)
        lost = own + max(waited.values(), default=0)
        return min(wall, max(processor / threads, wall - lost / 1e9))


def _waited() -> Mapping[int, int]:
    """Nanoseconds that each thread of this process has waited for a core so far."""
    found = {}
    try:
        for thread in os.listdir("/proc/self/task"):
            words = Path(f"/proc/self/task/{thread}/schedstat").read_text("ascii").split()
            found[int(thread)] = int(words[1])
    except (OSError, ValueError, IndexError):
        return {}
    return found
