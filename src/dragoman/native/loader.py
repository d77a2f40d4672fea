"""Find and load the shared library of native kernels, and say why when there is none.

Everything works without it: each kernel stands beside a plain-torch twin, and ``function`` gives
``None`` when the twin has to do the work. ``library.py`` says whether they agree.

``DRAGOMAN_NATIVE`` forces the choice: ``auto`` (the best that the processor can run), ``off``, or
the name of an instruction set (``avx512``, which means bf16 too; ``avx512vnni``, which does not;
``avxvnni``, ``avx2``; on ARM ``neon``).
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.native import abi
from dragoman.native import compile as building

LEVELS = ("avx512", "avx512vnni", "avxvnni", "avx2", "neon")
"""Instruction sets, best first. A level may use the kernels of those behind it."""

NEVER_RUN = {"neon": "right in an emulator, never run on a real ARM processor"}
"""Instruction sets that no machine of their own was tried with, and what was done in its place. The
comparison at the start (``library.py``) decides on such a machine, as on every other."""

CHOICES = ("auto", "off", *LEVELS)

logger = logging.getLogger("dragoman.native")


@dataclass(frozen=True)
class Status:
    """What was loaded, in words for ``doctor`` and logs."""

    level: str | None
    """The instruction set in use; None: plain torch does the work."""
    reason: str
    """One line: what is used and why."""


@dataclass(frozen=True)
class _Library:
    handle: ctypes.CDLL
    levels: tuple[str, ...]


_refused = False


def refuse() -> None:
    """Have no kernels until ``reset``: those that were loaded turned out to be wrong."""
    global _refused
    reset()
    _refused = True


def reset() -> None:
    """Forget what was loaded or refused, so that the next use decides anew."""
    global _refused
    _refused = False
    load.cache_clear()
    function.cache_clear()
    _share_threads.cache_clear()


def _choice() -> str:
    if _refused:
        return "off"
    choice = os.environ.get("DRAGOMAN_NATIVE") or "auto"
    if choice not in CHOICES:
        allowed = ", ".join(CHOICES)
        raise DragomanError(
            f"native kernels: DRAGOMAN_NATIVE says {choice!r}; allowed are {allowed}"
        )
    return choice


def library_path() -> Path:
    """Where the library lies (``DRAGOMAN_NATIVE_LIBRARY`` names another file)."""
    return Path(os.environ.get("DRAGOMAN_NATIVE_LIBRARY") or building.LIBRARY)


def loaded() -> bool:
    """Whether there are kernels; ``library.available`` compares them with their twins too."""
    return load()[0] is not None


def trains() -> bool:
    """Whether there are kernels that train, and not those alone that translate."""
    return function("norm_forward_fp32") is not None


@cache
def load() -> tuple[_Library | None, Status]:
    choice = _choice()
    if choice == "off":
        return None, Status(None, "off (DRAGOMAN_NATIVE=off): plain torch does the work")
    path = library_path()
    if not path.exists():
        return without(f"not built ({remedy()})")
    try:
        handle = ctypes.CDLL(str(path))
        mark, names = handle.dragoman_fingerprint, handle.dragoman_levels
    except (OSError, AttributeError) as error:
        first = str(error).splitlines()[0]
        return without(f"damaged: {first} ({remedy()})")
    mark.restype = names.restype = ctypes.c_char_p
    if mark().decode() != building.fingerprint():
        return without(f"stale, built from other sources than these ({remedy()})")
    if (other := abi.difference(handle)) is not None:
        return without(f"wrong: it lays out {other} otherwise than abi.py ({remedy()})")
    can = names().decode().split()
    if choice != "auto" and choice not in can:
        return without(f"this processor cannot run {choice} (it can run: {' '.join(can) or '-'})")
    wanted = tuple(n for n in LEVELS if n in can)
    if choice != "auto":
        wanted = wanted[wanted.index(choice) :]
    if not wanted:
        return without("this processor has neither AVX2 nor AVX-512, nor NEON with dot products")
    return _Library(handle, wanted), Status(wanted[0], wanted[0])


def remedy() -> str:
    return "build it with: python -m dragoman.native.compile"


def without(reason: str) -> tuple[None, Status]:
    line = f"native kernels: {reason}; plain torch does the work, slower"
    logger.warning(line)
    return None, Status(None, line)


def share_threads() -> bool:
    """Let the kernels run on the threads of torch's OpenMP runtime; False: they use their own.

    Where torch is not imported there are none to share, and nobody who would be in the way.
    """
    found, _ = load()
    return found is not None and "torch" in sys.modules and _share_threads(found.handle)


@cache
def _share_threads(handle: ctypes.CDLL) -> bool:
    """Once a library: when its first kernel is bound after torch was imported."""
    use = handle.dragoman_use_openmp
    use.argtypes, use.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int
    if use(None, None):
        return True
    for path in _loaded_openmp_runtimes():
        runtime = ctypes.CDLL(path)
        try:
            entry = runtime.GOMP_parallel, runtime.omp_get_max_threads
        except AttributeError:
            continue
        return bool(use(*(ctypes.cast(f, ctypes.c_void_p) for f in entry)))
    return False


def _loaded_openmp_runtimes() -> Sequence[str]:
    """Paths of the OpenMP runtimes that this process has mapped, torch's own first."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    found = set(re.findall(r"(/\S*/lib(?:gomp|iomp5|omp)\b\S*)", maps))
    return sorted(found, key=lambda path: ("torch" not in path, path))


@contextmanager
def own_threads() -> Iterator[None]:
    """All of torch's threads to the kernels' own pool, one to torch's operators, for a while.

    For work of which nearly all is the kernels': on a machine that does other things too, torch's
    threads wait for each other at every operator, and the pool's do not. Of the calling thread
    alone; without a library nothing changes.
    """
    import torch

    found, _ = load()
    threads = torch.get_num_threads()
    if found is None or threads == 1:
        yield
        return
    found.handle.dragoman_own_threads(threads)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        found.handle.dragoman_own_threads(0)


@cache
def function(name: str) -> Any | None:
    """Bind kernel ``name`` of the best level that has it; None if no level in use has one.

    Pass tensors and arrays by where they lie (``pointers.py``); ``abi.py`` says what it takes.
    """
    library, _ = load()
    if library is None:
        return None
    share_threads()
    for level in (*library.levels, None):
        symbol = f"dragoman_{level}_{name}" if level else f"dragoman_{name}"
        found = getattr(library.handle, symbol, None)
        if found is not None:
            # A fresh object, so that two bindings never share argument types.
            argument_types, result = abi.signature(name)
            kind = ctypes.CFUNCTYPE(result, *argument_types)
            return kind(ctypes.cast(found, ctypes.c_void_p).value or 0)
    return None
