"""Whether native kernels do the work: loaded (``loader.py``), and compared with their twins.

Who chooses between a kernel and plain torch asks here, once; the kernels themselves do not.
"""

from __future__ import annotations

from functools import cache

from dragoman.native import loader
from dragoman.native.check import first_difference
from dragoman.native.loader import LEVELS, Status, function, own_threads

__all__ = ["LEVELS", "Status", "available", "function", "own_threads", "reset", "status"]


@cache
def status() -> Status:
    """What is in use, after the kernels were compared with their twins on small products."""
    library, found = loader.load()
    if library is None:
        return found
    wrong = first_difference()
    if wrong is None:
        return found
    loader.refuse()
    return loader.without(
        f"{wrong} differs from its plain twin on this machine ({loader.remedy()})"
    )[1]


def available() -> bool:
    """Whether native kernels do the work. Decided once; costs a few milliseconds the first time."""
    return status().level is not None


def reset() -> None:
    """Forget what was loaded and compared, so that the next use decides anew."""
    loader.reset()
    status.cache_clear()
