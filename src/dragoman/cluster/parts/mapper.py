"""What is done to lines: made anew in each worker, alike in all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Texts = tuple[str, ...]
"""Of one row: its text, or its source and translation."""


@dataclass(frozen=True)
class Way:
    """How a worker computes. Results of two ways may differ in rare ties."""

    precision: str = "fp32"
    level: str = ""
    """The instruction set of the kernels; nothing for plain torch."""
    dragoman: str = ""
    torch: str = ""

    @property
    def words(self) -> str:
        """For messages."""
        by = f"native kernels for {self.level}" if self.level else "plain torch"
        return f"{self.precision} by {by}, dragoman {self.dragoman}, torch {self.torch}"


@dataclass(frozen=True)
class LineMapper:
    """A model that is ready."""

    outputs: Callable[[Sequence[Texts]], Iterable[str]]
    """Rows in, the output of each without its last line end. Errors: ``DragomanError`` for a row
    that it cannot take."""
    precision: str
    level: str
    description: str
    """One line for people: what runs the model on this machine, and why."""
    seen: Callable[[Sequence[Texts], Sequence[str]], Any] = lambda rows, outputs: None
    """Rows and their outputs in, what is noted of them, as JSON can hold it."""


MakeMapper = Callable[[str], LineMapper]
"""Makes one, in the precision that is named; "": in the fastest. It goes to other processes and
machines, so it is a function of a module, or a ``partial`` of one."""
