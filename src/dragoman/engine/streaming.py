"""Cuts standard input into windows: large enough for batches, without a long wait for more
lines."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from dragoman.base.errors import DragomanError

WINDOW = 4000
"""The most lines that are translated together, and the most that are read ahead. It is several
times the number that a search sorts together, since the search's threads idle at the end of each
window."""
PATIENCE = 0.05
"""The seconds, counted from its first line, that a window waits for more lines before it is
translated."""


Item = TypeVar("Item")


def windows(
    lines: Iterable[Item], size: int = WINDOW, patience: float = PATIENCE
) -> Iterator[list[Item]]:
    """Cut a stream into windows: of ``size`` lines, or of the lines that came within ``patience``
    seconds.

    A thread reads at most ``size`` lines ahead while a window is being translated. An error of
    reading is raised after the lines that were read before it.
    """
    waiting: queue.Queue[tuple[Item] | Exception | None] = queue.Queue(maxsize=size)
    gone = threading.Event()

    def put(item: tuple[Item] | Exception | None) -> bool:
        while not gone.is_set():
            try:
                waiting.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for line in lines:
                if not put((line,)):
                    return
            put(None)
        except (OSError, ValueError, DragomanError) as error:
            put(error)

    threading.Thread(target=read, daemon=True, name="reader").start()
    try:
        window: list[Item] = []
        ready = 0.0
        while True:
            try:
                if window:
                    item = waiting.get(timeout=max(0.0, ready - time.monotonic()))
                else:
                    item = waiting.get()
                    ready = time.monotonic() + patience
            except queue.Empty:
                yield window
                window = []
                continue
            if not isinstance(item, tuple):
                if window:
                    yield window
                if item is None:
                    return
                raise item
            window.append(item[0])
            if len(window) == size:
                yield window
                window = []
    finally:
        gone.set()
