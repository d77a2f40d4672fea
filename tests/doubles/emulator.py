"""The kernels for ARM, compiled for it and run in an emulator: nobody has such a machine here.

A program of a test (C++) is linked with all kernels, statically; it reads what to do from one file
and writes what came of it to another.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from dragoman.native import compile as building
from dragoman.native import library


def compilers() -> dict[str, list[str]]:
    """Each that there is for aarch64, by name: those that make the kernels there, and in wheels."""
    found = {}
    own = building.find_compiler() if platform.machine() == "aarch64" else None
    if gcc := shutil.which("aarch64-linux-gnu-g++") or own:
        found["g++"] = [gcc, *building.LEVEL_FLAGS["neon"]]
    if find_spec("ziglang"):
        target = ["-target", "aarch64-linux-musl", *building.ZIG_NEON, *building.ZIG_FLAGS]
        found["zig"] = [sys.executable, "-m", "ziglang", "c++", *target]
    return found


EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
COMPILERS = compilers()

MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMPILERS, reason="no compiler for aarch64 (g++ or ziglang)"),
    pytest.mark.skipif(EMULATOR is None, reason="no qemu-aarch64"),
    pytest.mark.skipif(not library.available(), reason="no native library to compare with"),
]


def _compile(compiler: str, source: Path, folder: Path) -> Path:
    made = folder / f"{source.stem}.o"
    level = ["-DDRAGOMAN_LEVEL=neon"] if "neon" in building.levels(source) else []
    flags = [*building.COMMON_FLAGS, *level, "-I", str(building.SOURCES)]
    command = [*COMPILERS[compiler], *flags, "-c", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return made


@cache
def _kernels(compiler: str) -> tuple[list[Path], tempfile.TemporaryDirectory[str]]:
    """Objects of all that a library for ARM is made of, once for all tests of a process."""
    folder = tempfile.TemporaryDirectory(prefix="dragoman-emulated-")
    found = [s for s in building.SOURCES.glob("*.cpp") if {"neon", "base"} & {*building.levels(s)}]
    return [_compile(compiler, source, Path(folder.name)) for source in found], folder


def build(compiler: str, program: Path, folder: Path) -> Path:
    """A program and the kernels -> what ``emulate`` runs."""
    kernels, _ = _kernels(compiler)
    objects = map(str, [*kernels, _compile(compiler, program, folder)])
    made = folder / program.stem
    linking = [*COMPILERS[compiler], "-static", "-pthread", *objects, "-o", str(made)]
    subprocess.run(linking, check=True, capture_output=True)
    return made


def emulate(program: Path, *given: str, processor: str = "max") -> str:
    assert EMULATOR is not None
    done = subprocess.run(
        [EMULATOR, "-cpu", processor, str(program), *given],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
