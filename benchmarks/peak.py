"""The peak of products without any load or store, on every core at once: of Intel's tiles, and of
AVX-512."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.native import compile as building
from dragoman.native import loader

SOURCE = Path(__file__).with_name("peak.cpp")
TIMES = 20_000
TILES = 4 * 2 * 16 * 16 * 32
"""Multiplications and additions of one turn on tiles: four products of 16 x 32 and 32 x 16."""
REGISTERS = {"fp32": 16 * 2 * 16, "bf16": 16 * 2 * 32, "int8": 16 * 2 * 64}
"""Those of one turn in registers, which sums up 16 vectors of 16 numbers."""


@cache
def _library(level: str) -> ctypes.CDLL | None:
    """The functions of ``peak.cpp`` for an instruction set; None where this machine lacks it, or a
    compiler."""
    compiler = building.find_compiler()
    if compiler is None or level not in loader.levels_offered():
        return None
    flags = [*building.COMMON_FLAGS, *building.LEVEL_FLAGS[level], f"-DDRAGOMAN_LEVEL={level}"]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "peak.so"
        sources = ["-I", str(building.SOURCES), "-shared", str(SOURCE)]
        subprocess.run([compiler, *flags, *sources, "-o", made], check=True)
        return ctypes.CDLL(str(made))


def tiles_rate(threads: int) -> float | None:
    """Operations per second of the tiles of ``threads`` cores together; None where there are
    none."""
    library = _library("amx")
    return None if library is None else _rate(library.dragoman_amx_peak, TILES, threads)


def registers_rate(kind: str, threads: int) -> float | None:
    """Operations per second of AVX-512 in one of ``REGISTERS``; None where there is no such
    instruction."""
    for level in ("avx512", "avx512vnni"):
        kernel = getattr(_library(level), f"dragoman_{level}_peak_{kind}", None)
        if kernel is not None:
            return _rate(kernel, REGISTERS[kind], threads)
    return None


def _rate(kernel: Any, operations: int, threads: int) -> float:
    """The best of some calls of a few milliseconds: what the cores can do, whatever else runs on
    them."""
    best = [float("inf")] * threads

    def measure(thread: int) -> None:
        for _ in range(100):
            start = time.perf_counter()
            kernel(ctypes.c_int64(TIMES))
            best[thread] = min(best[thread], time.perf_counter() - start)

    running = [threading.Thread(target=measure, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(TIMES * operations / seconds for seconds in best)
