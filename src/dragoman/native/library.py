"""The choice of native kernels: loaded (``loader.py``), and compared with their twins.

The choice between a kernel and plain torch is made here, once, not in the kernels.
"""

from __future__ import annotations

from functools import cache
from threading import Lock

from dragoman.native import loader
from dragoman.native.loader import Status

_compared_before = False
_deciding = Lock()
"""The comparison draws from torch's one generator: two at once would draw each other's numbers, and
find kernels wrong that are right."""


def status() -> Status:
    """The kernels in use, after they were compared with their twins on small products. Other
    threads wait for the comparison."""
    with _deciding:
        return _decide()


@cache
def _decide() -> Status:
    library, loaded = loader.load()
    if library is None:
        return loaded
    if _compared_before:
        return Status(loaded.level, f"{loaded.reason}, compared with plain torch before")
    from dragoman.native.check import first_difference

    wrong = first_difference()
    if wrong is None:
        threads = "torch's threads" if loader.share_threads() else "its own threads"
        never = loader.NEVER_RUN.get(str(loaded.level))
        return Status(
            loaded.level, f"{loaded.reason}, on {threads}" + (f"; {never}" if never else "")
        )
    loader.refuse()
    return loader.without(
        f"{wrong} differs from its plain twin on this machine ({loader.remedy()})"
    )[1]


def available() -> bool:
    """True if native kernels are used. Decided once; costs a few milliseconds the first time."""
    return status().level is not None


def agrees(level: str) -> bool:
    """True if the kernels of one instruction set compute what their twins do. ``status`` compares
    those of the best one, and this function the others when they are needed."""
    if not available():
        return False
    with _deciding:
        return level == loader.levels_offered()[0] or _agrees(level)


@cache
def _agrees(level: str) -> bool:
    if _compared_before or loader.training_level(level, "fp32", "bf16") != level:
        return True  # none of its own that trains
    from dragoman.native.check import first_difference

    with loader.using(level):
        wrong = first_difference()
    if wrong is not None:
        loader.logger.warning(
            "native kernels: %s of %s differs from its plain twin on this machine, so %s is not "
            "used (%s)", wrong, level, level, loader.remedy()
        )  # fmt: skip
    return wrong is None


def take_as_compared() -> None:
    """Spare this process the comparison, for which torch is needed, unless it was made already.

    For who knows that an earlier process has compared this very library on this very machine
    (``native/measured.py``).
    """
    global _compared_before
    if not _decide.cache_info().currsize:
        _compared_before = True


def taken_as_compared() -> bool:
    """True if this process relies on the comparison that an earlier one made."""
    return _compared_before


def reset() -> None:
    """Forget what was loaded and compared, so that the next use decides again."""
    global _compared_before
    _compared_before = False
    loader.reset()
    _decide.cache_clear()
    _agrees.cache_clear()
