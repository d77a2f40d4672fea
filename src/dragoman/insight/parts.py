"""Long work in parts: between two of them, whoever asked for it can end it.

    with ended_by(check):
        make_figure("head-importance", subject)

What takes long here (a search, a reading, a loss with one head off) calls ``begin_part`` before
each part. ``check`` is then called, and ends the work by raising; where none is set, and on the
command line none is, nothing happens. It belongs to the thread that set it, as a probe does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]

_check: ContextVar[Check | None] = ContextVar("check", default=None)


@contextmanager
def ended_by(check: Check) -> Iterator[None]:
    """While open, each part of the work in this thread begins with ``check()``."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def begin_part() -> None:
    """Raises whatever the check does that is set here, if any."""
    check = _check.get()
    if check is not None:
        check()
