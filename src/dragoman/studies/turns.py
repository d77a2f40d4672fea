"""How fast runs translate and how much memory they take, each in a process of its own, in turns.

What else the machine does falls on all of them alike: every process is warmed up, then they
translate the same sentences one after another, round by round. Whatever else runs only ever adds,
so the least time counts. Memory is the most that the process took, program and all.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from dragoman.errors import RunError
from dragoman.memory import peak_bytes

ROUNDS = 3


@dataclass(frozen=True)
class TurnPace:
    """How one run translates."""

    path: str
    """What translates: int8 kernels, or torch in bf16 or fp32."""
    seconds: tuple[float, ...]
    """For all sentences, in every round."""
    sentences: int
    megabytes: float
    """The most memory of its process."""

    @property
    def sentences_per_second(self) -> float:
        """In the fastest round."""
        return self.sentences / min(self.seconds)


def measure_in_turns(
    folders: Sequence[Path], sentences: Sequence[str], rounds: int = ROUNDS
) -> list[TurnPace]:
    """Errors: ``RunError`` if one of the processes fails, with what it said."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        pipes: list[Connection] = []
        paths: list[str] = []
        for folder in folders:
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_translate_in_turns, args=(str(folder), list(sentences), theirs), daemon=True
            )
            process.start()
            theirs.close()
            stack.callback(process.join, 10)
            stack.callback(ours.close)
            pipes.append(ours)
            # One after another: what loads and warms up does not meet another that does.
            paths.append(str(_answer(ours, folder)))
        seconds: list[list[float]] = [[] for _ in folders]
        for _ in range(rounds):
            for folder, pipe, times in zip(folders, pipes, seconds, strict=True):
                pipe.send("translate")
                times.append(float(_answer(pipe, folder)))
        measured = []
        for folder, pipe, path, times in zip(folders, pipes, paths, seconds, strict=True):
            pipe.send("end")
            memory = float(_answer(pipe, folder))
            measured.append(TurnPace(path, tuple(times), len(sentences), memory))
    return measured


def _answer(pipe: Connection, folder: Path) -> str | float:
    try:
        kind, answer = pipe.recv()
    except EOFError:
        raise RunError(f"the process that translates with {folder} ended at once") from None
    if kind == "error":
        raise RunError(f"{folder} could not translate: {answer}")
    found: str | float = answer
    return found


def _translate_in_turns(folder: str, sentences: list[str], pipe: Connection) -> None:
    """What each process does: says by what it translates, then translates whenever it is told."""
    from dragoman.errors import DragomanError
    from dragoman.native.allocator import keep_memory

    keep_memory()
    try:
        from dragoman.runs.run import Run
        from dragoman.tasks.translation.translator import Translator

        translator = Translator(Run.open(folder))
        list(translator.stream(sentences))
        pipe.send(("path", translator.description))
        while pipe.recv() == "translate":
            began = time.perf_counter()
            list(translator.stream(sentences))
            pipe.send(("seconds", time.perf_counter() - began))
        pipe.send(("megabytes", peak_bytes() / 1e6))
    except DragomanError as error:
        pipe.send(("error", str(error)))
    except EOFError:
        pass  # whoever asked is gone
