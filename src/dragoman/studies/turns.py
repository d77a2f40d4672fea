"""The speed and the memory of runs that translate in turns, each in a process of its own.

Every process is warmed up; then all translate the same sentences, one after another, round by
round, so that other work on the machine slows all of them alike. Other work can only add time, so
the shortest time counts. Memory is the peak of the process, program included.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dragoman.base.errors import DragomanError, RunError
from dragoman.base.workers import WorkerProcess
from dragoman.native.allocator import keep_memory, peak_bytes
from dragoman.studies.systems import open_translator

Answer = TypeVar("Answer")

ROUNDS = 3


@dataclass(frozen=True)
class TurnPace:
    """The speed and the memory of one run."""

    path: str
    """The implementation: int8 kernels, or torch in bf16 or fp32."""
    seconds: tuple[float, ...]
    """The time for all sentences, in every round."""
    sentences: int
    megabytes: float
    """The peak memory of its process in megabytes."""

    @property
    def sentences_per_second(self) -> float:
        """The speed in the fastest round."""
        return self.sentences / min(self.seconds)


def measure_in_turns(
    folders: Sequence[Path], sentences: Sequence[str], rounds: int = ROUNDS
) -> list[TurnPace]:
    """Measure some runs. Errors: ``RunError``, with the message of the process that failed."""
    with ExitStack() as stack:
        processes: list[tuple[Path, WorkerProcess]] = []
        paths: list[str] = []
        for folder in folders:
            process = WorkerProcess(keep_memory)
            stack.callback(process.stop)
            processes.append((folder, process))
            # Processes start one after another: they would slow each other down while they load.
            paths.append(_wait(folder, process.ask(_warm_up, str(folder), list(sentences))))
        turns = [
            [_wait(folder, process.ask(_translate)) for folder, process in processes]
            for _ in range(rounds)
        ]
        memory = [_wait(folder, process.ask(peak_bytes)) / 1e6 for folder, process in processes]
    return [
        TurnPace(path, seconds, len(sentences), megabytes)
        for path, seconds, megabytes in zip(paths, zip(*turns, strict=True), memory, strict=True)
    ]


def _wait(folder: Path, asked: Future[Answer]) -> Answer:
    try:
        return asked.result()
    except BrokenExecutor:
        raise RunError(f"the process that translates with {folder} ended at once") from None
    except DragomanError as error:
        raise RunError(f"{folder} could not translate: {error}") from error


def _warm_up(folder: str, sentences: list[str]) -> str:
    """Translate once, in a process of its own, so that ``_translate`` is timed warm. Returns a
    description of the implementation."""
    from dragoman.tasks import catalogue

    translator = open_translator(catalogue.Run.open(folder))
    list(translator.stream(sentences))
    _WARM.append((translator, sentences))
    description: str = translator.description
    return description


_WARM: list[tuple[Any, list[str]]] = []
"""The translator of a process and its sentences."""


def _translate() -> float:
    """Translate all sentences. Returns the seconds."""
    translator, sentences = _WARM[-1]
    began = time.perf_counter()
    list(translator.stream(sentences))
    return time.perf_counter() - began
