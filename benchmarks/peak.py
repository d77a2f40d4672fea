"""The peak of Intel's tiles: products of bf16 without any load or store, on every core at once."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

from dragoman.native import compile as building
from dragoman.native import loader

SOURCE = Path(__file__).with_name("peak.cpp")
TIMES = 20_000
OPERATIONS = TIMES * 4 * 2 * 16 * 16 * 32
"""Multiplications and additions of one call: four products of 16 x 32 and 32 x 16."""


@cache
def _kernel() -> ctypes.CDLL | None:
    """None where there are no tiles, or no compiler."""
    compiler = building.find_compiler()
    if compiler is None or "amx" not in loader.levels_offered():
        return None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "peak.so"
        flags = [*building.COMMON_FLAGS, *building.LEVEL_FLAGS["amx"], "-DDRAGOMAN_LEVEL=amx"]
        command = [
            compiler,
            *flags,
            "-I",
            str(building.SOURCES),
            "-shared",
            str(SOURCE),
            "-o",
            made,
        ]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(made))


def tiles_rate(threads: int) -> float | None:
    """Operations per second of the tiles of ``threads`` cores together; None where there are none.

    The best of some calls of a few milliseconds: what the cores can do, whatever else runs on them.
    """
    kernel = _kernel()
    if kernel is None:
        return None
    best = [float("inf")] * threads

    def measure(thread: int) -> None:
        for _ in range(20):
            start = time.perf_counter()
            kernel.dragoman_amx_peak(ctypes.c_int64(TIMES))
            best[thread] = min(best[thread], time.perf_counter() - start)

    running = [threading.Thread(target=measure, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(OPERATIONS / seconds for seconds in best)
