"""What calling the command line in a test gives. Not a test: tests import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Said(NamedTuple):
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


Dragoman = Callable[..., Said]
