"""Bounds on the time and the memory of what a stranger gives. Not a test: tests import it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SLACK = 64 << 20
"""Bytes."""
SECONDS = 20


def memory(name: str) -> int:
    """VmRSS or VmHWM of this process, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise AssertionError(name)


@contextmanager
def bounded(size: int) -> Iterator[None]:
    """At most 20 seconds, and no more memory than four times ``size`` bytes and 64 MB.

    Generous, so that a busy machine is no reason to fail: what grows with the square of its input
    takes minutes at the sizes that are tried.
    """

    def late(*_: object) -> None:
        raise AssertionError(f"not done after {SECONDS} seconds")

    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # VmHWM begins anew
    before, handler = memory("VmRSS"), signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
    assert memory("VmHWM") - before <= 4 * size + SLACK
