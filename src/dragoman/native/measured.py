"""Timing of work on cores that others use too, and the memory of what was measured.

Times are remembered, so that they are not measured at every start.

The first translator on a machine times a small model on each way to run it that there is (some
tenths of a second), and the first training of a model of some shape times its own updates; the
answers are in the user's cache folder, under a key of everything that they depend on: the processor
and its microcode, torch, the native library, the number of threads, the work. Deleting the file, or
moving the folder to another machine, only means that it is measured again.

Kernels are measured only after they were compared with plain torch, so what is remembered of them
says that too, of this very library on this very machine (``recall``): a later process may translate
by them without torch. Nothing is imported for a look at the memory but what reads it.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib import metadata
from itertools import takewhile
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError, FileError, RunError
from dragoman.base.reading import read_json
from dragoman.native import loader, processor


class Stopwatch:
    """Starts when it is made; ``seconds`` is what the work since then would take undisturbed.

    That is wall-clock time less the time in which threads of this process were ready to run and had
    to wait for a core (Linux counts it for each thread): of the calling thread, and of the one that
    waited most among the others, for which the calling one may have waited in turn. It is no less
    than processor time shared out evenly. Where the kernel does not count, it is wall-clock time.
    """

    def __init__(self) -> None:
        self._waited = _waiting_times()
        self._processor = time.process_time()
        self._wall = time.perf_counter()

    def seconds(self, threads: int) -> float:
        """``threads``: on how many the work was done."""
        wall = time.perf_counter() - self._wall
        processor = time.process_time() - self._processor
        now = _waiting_times()
        if not now:
            return wall
        waited = {thread: total - self._waited.get(thread, 0) for thread, total in now.items()}
        own = waited.pop(threading.get_native_id(), 0)
        lost = own + max(waited.values(), default=0)
        return min(wall, max(processor / threads, wall - lost / 1e9))


def _waiting_times() -> Mapping[int, int]:
    """Nanoseconds that each thread of this process has waited for a core so far."""
    times = {}
    try:
        for thread in os.listdir("/proc/self/task"):
            words = Path(f"/proc/self/task/{thread}/schedstat").read_text("ascii").split()
            times[int(thread)] = int(words[1])
    except (OSError, ValueError, IndexError):
        return {}
    return times


NAME = "machine.json"

MAX_REMEMBERED = 500
"""Machines, or kinds of work on one, that are remembered; the oldest go first."""

_KNOWN = TypeAdapter(dict[str, dict[str, Annotated[int, Field(strict=True, ge=1, le=10**12)]]])
"""The content of the file: key -> trial -> microseconds."""

logger = logging.getLogger("dragoman")


def measures() -> bool:
    """True if kernels of several instruction sets, and ways to train, are timed against each other;
    False if ``DRAGOMAN_MEASURE`` is "off".

    Errors: ``DragomanError`` for another word.
    """
    choice = os.environ.get("DRAGOMAN_MEASURE") or "auto"
    if choice not in ("auto", "off"):
        raise DragomanError(f"DRAGOMAN_MEASURE={choice!r} is not one of auto, off")
    return choice == "auto"


Trial = Callable[[], None]
"""Does the work that is timed."""


def microseconds(folder: Path, trials: Mapping[str, Callable[[], Trial]]) -> dict[str, int]:
    """The time of each of ``trials`` on this machine: read from ``folder``, or measured now.

    The value of a trial prepares what is to be timed. A folder that cannot be written to is no
    error: then it is measured again next time.
    """
    times = dict(recall(folder))
    if not trials.keys() <= times.keys():
        times |= measure(trials)
        remember(folder, times)
    return {name: times[name] for name in trials}


def recall(folder: Path, work: str = "") -> Mapping[str, int]:
    """The remembered times of this machine, trial -> microseconds; empty if none were measured.

    If the kernels' trial is among it, a process before this one has found that they compute what
    plain torch does.
    """
    return _read(folder / NAME).get(machine_key(work), {})


def remember(folder: Path, times: Mapping[str, int], work: str = "") -> None:
    """Keep what was measured, trial -> microseconds; of other work what was measured last."""
    kept, key = _read(folder / NAME), machine_key(work)
    kept.pop(key, None)
    _write(folder / NAME, dict([*kept.items(), (key, dict(times))][-MAX_REMEMBERED:]))


def measure(trials: Mapping[str, Callable[[], Trial]], rounds: int = 5) -> dict[str, int]:
    """Time all in turns -> the least processor time of each, over all threads.

    Not wall clock: on a busy machine that measures how often one is interrupted.
    """
    work = {name: prepare() for name, prepare in trials.items()}
    best = dict.fromkeys(work, float("inf"))
    for turn in range(rounds + 1):
        for name, trial in work.items():
            begin = time.process_time()
            trial()
            if turn > 0:  # the first finds everything cold
                best[name] = min(best[name], time.process_time() - begin)
    return {name: max(1, round(seconds * 1e6)) for name, seconds in best.items()}


def machine_key(work: str = "") -> str:
    """A hash of everything that a measurement depends on, ``work`` among it."""
    digest = hashlib.sha256()
    for part in (
        _processor(),
        _torch(),
        library_hash(loader.library_path()),
        str(loader.load()[1].level),
        # What torch makes its number of threads from.
        str(processor.all_cores()),
        processor.threads_asked(),
        os.environ.get("MKL_NUM_THREADS", ""),
        work,
    ):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


@cache
def _torch() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:  # it is there, but was not installed by a package
        return "unknown"


@cache
def library_hash(path: Path) -> str:
    """A hash of the library of kernels: another compiler makes another of the same sources."""
    with path.open("rb") if path.exists() else io.BytesIO() as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _processor() -> str:
    """The lines of /proc/cpuinfo that tell processors apart; of the first core."""
    wanted = (
        "vendor_id", "cpu family", "model", "stepping", "microcode", "flags", "Features",
        "CPU part",
    )  # fmt: skip
    first = takewhile(bool, processor.cpuinfo())
    return "\n".join(line for line in first if line.startswith(wanted))


def _read(path: Path) -> dict[str, dict[str, int]]:
    try:
        return _KNOWN.validate_python(read_json(path))
    except (RunError, ValidationError):
        return {}


def _write(path: Path, known: Mapping[str, Mapping[str, int]]) -> None:
    """Writes the file. Of several writers the last one wins."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(known, indent=1) + "\n")
    except (OSError, FileError) as error:
        logger.debug("%s: what was measured is not kept: %s", path, error)
