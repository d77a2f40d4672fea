"""What work takes is told apart from what it waits for a core."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from dragoman.native import measured
from dragoman.native.measured import Stopwatch


def work(seconds: float) -> None:
    """Of the processor."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


@pytest.fixture
def a_core_with_others() -> Iterator[None]:
    """Three programs that never end beside this one, all on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        yield
    finally:
        for one in others:
            one.kill()
            one.wait()
        os.sched_setaffinity(0, before)


@pytest.mark.skipif(not measured._waiting_times(), reason="the kernel does not count")
def test_waiting_for_a_core_is_left_out(a_core_with_others: None) -> None:
    wall, watch = time.perf_counter(), Stopwatch()
    work(0.3)
    found, wall = watch.seconds(1), time.perf_counter() - wall
    assert 0.29 < found < 0.6 * wall


def test_sleep_is_a_part_of_the_work() -> None:
    watch = Stopwatch()
    time.sleep(0.1)
    assert watch.seconds(1) > 0.09


def test_where_nothing_is_counted_the_clock_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_waiting_times", dict)
    watch = Stopwatch()
    time.sleep(0.05)
    assert watch.seconds(4) >= 0.05
