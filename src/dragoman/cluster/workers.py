"""Who does parts: processes of this machine (``processes.py``) or actors of Ray (``actors.py``).

What a worker is asked comes back as a future. One that has an exception in place of an answer is
that of a worker that is lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import Any

from dragoman.cluster.parts.job import Work
from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.part import PartNote
from dragoman.errors import DragomanError

Answer = tuple[Way, str] | tuple[PartNote, bool] | str
"""How a worker computes, and a line for people; or what is noted of a part, and whether it is this
worker's that stands; or the message of an error that no other try can mend."""


class Workers(ABC):
    """Processes somewhere, each with a model of its own."""

    number: int
    """How many work at once."""

    @abstractmethod
    def start(self, worker: int, work: Work) -> Future[Answer]:
        """Begin another, which opens its model."""

    @abstractmethod
    def give(self, worker: int, part: int) -> Future[Answer]:
        """Let a worker that is ready do a part."""

    @abstractmethod
    def stop(self, worker: int) -> None:
        """End one, whatever it is at, if it is there yet."""

    @abstractmethod
    def close(self) -> None:
        """End all."""


class Hand:
    """The worker itself, where it runs."""

    def __init__(self) -> None:
        self._work: Work | None = None
        self._tools: Any = None
        self._way = Way()

    def open(self, work: Work) -> Answer:
        """Open the model."""
        try:
            self._work = work
            self._tools, self._way, description = work.begun()
        except DragomanError as error:
            return str(error)
        return self._way, description

    def do(self, part: int) -> Answer:
        """Do a part, once the model is open."""
        assert self._work is not None, "open comes first"
        try:
            return self._work.do(part, self._tools, self._way)
        except DragomanError as error:
            return str(error)
