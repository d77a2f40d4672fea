"""Whether native kernels do the work: loaded (``loader.py``), and compared with their twins.

Who chooses between a kernel and plain torch asks here, once; the kernels themselves do not.
"""

from __future__ import annotations

from functools import cache

from dragoman.native import loader
from dragoman.native.check import first_difference
from dragoman.native.loader import CHOICES, LEVELS, Status, function, own_threads

__all__ = [
    "CHOICES", "LEVELS", "Status",
    "available", "force", "function", "own_threads", "reset", "status",
]  # fmt: skip


@cache
def status() -> Status:
    """What is in use, after the kernels were compared with their twins on small products."""
    library, found = loader.load()
    if library is None:
        return found
    wrong = first_difference()
    if wrong is None:
        return found
    loader.force("off")
    return loader.without(
        f"{wrong} differs from its plain twin on this machine ({loader.remedy()})"
    )[1]


def available() -> bool:
    """Whether native kernels do the work. Decided once; costs a few milliseconds the first time."""
    return status().level is not None


def force(choice: str) -> None:
    """Choose the instruction set for this process: see ``loader.force``."""
    loader.force(choice)
    status.cache_clear()


def reset() -> None:
    """Forget what was loaded and compared, so that the next use decides anew."""
    loader.reset()
    status.cache_clear()
