"""A faster way to run the models of a kind, for whoever wants one fast and need not know its kind.

``kinds.py`` says which kinds have some. They keep the contract of ``interface.py`` and are held to
what the model itself computes (``tests/contract``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.models.interface import Model
from dragoman.models.settings import ModelSettings
from dragoman.models.shortlist import Shortlist


@dataclass(frozen=True)
class FastPath:
    """One way to run a model of the kind, told from the others by the precision of its products."""

    precision: Literal["int8", "bf16", "fp32"]
    make: Callable[[Any, Shortlist | None], Model]
    """The network on this path: its weights are packed now, and later changes do not show."""
    why_not: Callable[[ModelSettings | None], str | None]
    """Why models of such settings (None: all of the kind) cannot be run so on this machine; None
    if they can."""
    trial: Callable[[], Callable[[], None]]
    """Makes some work of a small model, whose time tells what this path is worth here."""
    line: Callable[[], str]
    """What does the work, as the choice of a path is told."""
    units: Callable[[], str]
    """The same for whoever asks what the machine can do."""
    takes_shortlist: bool = False
    trial_name: str = ""
    """What its trial is remembered by; left out, its precision."""

    @property
    def remembered_as(self) -> str:
        return self.trial_name or self.precision
