"""What the driver asks of workers, and what it hears of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.part import PartNote
from dragoman.cluster.parts.work import Work


@dataclass(frozen=True)
class Ready:
    """A worker has opened the model."""

    worker: int
    way: Way
    description: str


@dataclass(frozen=True)
class Progress:
    """A worker has done more lines of its part."""

    worker: int
    lines: int


@dataclass(frozen=True)
class Done:
    """A part stands; ``own``: this worker's, and not one that stood before."""

    worker: int
    note: PartNote
    own: bool


@dataclass(frozen=True)
class Refused:
    """What no other try can mend; ``str`` of a ``DragomanError``."""

    worker: int
    message: str


@dataclass(frozen=True)
class Died:
    """A worker is gone, and with it what it was at."""

    worker: int
    how: str


Event = Ready | Progress | Done | Refused | Died


class Workers(ABC):
    """Processes somewhere, each with a model of its own."""

    number: int
    """How many work at once."""

    @abstractmethod
    def start(self, worker: int, work: Work) -> None:
        """Begin another; it says ``Ready``, or what is wrong."""

    @abstractmethod
    def give(self, worker: int, part: int) -> None:
        """Let a worker that is ready do a part."""

    @abstractmethod
    def wait(self, seconds: float) -> Sequence[Event]:
        """What happened, within some time; nothing if nothing did."""

    @abstractmethod
    def stop(self, worker: int) -> None:
        """End one, whatever it is at."""

    @abstractmethod
    def close(self) -> None:
        """End all."""
