"""Find and load the shared library of native kernels, and say why when there is none.

Everything works without it: each kernel has a plain-torch twin, and ``function`` gives
``None`` when the twin has to do the work. ``library.py`` says whether they agree.

One library holds the kernels of all instruction sets ("levels"). The best that the processor can
run is in use unless ``using`` says otherwise for a while: which level is the fastest at some work
is measured by the callers (``models/catalogue/fastest.py``, ``training/fastest_way.py``).

``DRAGOMAN_NATIVE`` forces the choice: ``auto`` (the best that the processor can run), ``off``, or
the name of an instruction set (``amx``, Intel's tiles; ``avx512``, which means bf16 too;
``avx512vnni``, which does not; ``avxvnni``, ``avx2``; on ARM ``neon``). ``amxtwin`` is for tests:
the kernels of ``amx`` on tiles in plain C++, and those of ``avx2`` next to them.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.native import abi
from dragoman.native import compile as building

LEVELS = ("amx", "avx512", "avx512vnni", "avxvnni", "avx2", "neon")
"""Instruction sets, best first. A level may use the kernels of those behind it."""

TWIN = building.TWIN
"""Runs wherever AVX2 does, far slower: never chosen, only forced."""

NEVER_RUN = {"neon": "right in an emulator, never run on a real ARM processor"}
"""Instruction sets that no machine of their own was tried with, and what was done in its place. The
comparison at the start (``library.py``) decides on such a machine, as on every other."""

CHOICES = ("auto", "off", *LEVELS, TWIN)

logger = logging.getLogger("dragoman.native")


@dataclass(frozen=True)
class Status:
    """The state of the kernels, in words for ``doctor`` and logs."""

    level: str | None
    """The instruction set in use; None: plain torch does the work."""
    reason: str
    """One line: what is used and why."""


@dataclass(frozen=True)
class _Library:
    handle: ctypes.CDLL
    levels: tuple[str, ...]
    """The instruction sets that may be bound here, best first."""
    offered: tuple[str, ...]
    """The instruction sets that may be chosen: all of them, or the one that was forced."""


_refused = False


def refuse() -> None:
    """Have no kernels until ``reset``: those that were loaded turned out to be wrong."""
    global _refused
    reset()
    _refused = True


def reset() -> None:
    """Forget what was loaded or refused, so that the next use decides again."""
    global _refused
    _refused = False
    load.cache_clear()
    _bind.cache_clear()
    _share_threads.cache_clear()


def _choice() -> str:
    if _refused:
        return "off"
    choice = os.environ.get("DRAGOMAN_NATIVE") or "auto"
    if choice not in CHOICES:
        allowed = ", ".join(CHOICES)
        raise DragomanError(f"native kernels: DRAGOMAN_NATIVE={choice!r} is not one of {allowed}")
    return choice


def library_path() -> Path:
    """The path of the library (``DRAGOMAN_NATIVE_LIBRARY`` names another file)."""
    return Path(os.environ.get("DRAGOMAN_NATIVE_LIBRARY") or building.LIBRARY)


def is_loaded() -> bool:
    """True if there are kernels; ``library.available`` compares them with their twins too."""
    return load()[0] is not None


def trains() -> bool:
    """True if there are kernels for training, not only for translating."""
    return function("norm_forward_fp32") is not None


@cache
def load() -> tuple[_Library | None, Status]:
    choice = _choice()
    if choice == "off":
        return None, Status(None, "off (DRAGOMAN_NATIVE=off): plain torch is used")
    path = library_path()
    if not path.exists():
        return without(f"not built ({remedy()})")
    try:
        handle = ctypes.CDLL(str(path))
        mark = handle.dragoman_fingerprint
    except (OSError, AttributeError) as error:
        first = str(error).splitlines()[0]
        return without(f"damaged: {first} ({remedy()})")
    mark.restype = ctypes.c_char_p
    if mark().decode() != building.fingerprint():
        return without(f"stale, built from other sources than these ({remedy()})")
    if (other := abi.difference(handle)) is not None:
        return without(f"wrong: its layout of {other} differs from abi.py ({remedy()})")
    can, why_not = _can_run(handle)
    if choice == TWIN and not building.has_twin(path):
        return without(f"{TWIN} is for tests, and not in this library ({remedy()} --twin)")
    if choice != "auto" and choice not in can:
        if why_not.startswith(f"{choice}:"):
            return without(why_not)
        return without(f"this processor cannot run {choice} (it can run: {' '.join(can) or '-'})")
    levels = tuple(n for n in LEVELS if n in can)
    if choice == TWIN:
        levels = TWIN, "avx2"
    elif choice != "auto":
        levels = levels[levels.index(choice) :]
    if not levels:
        return without("this processor has neither AVX2 nor AVX-512, nor NEON with dot products")
    reason = f"{levels[0]} ({why_not})" if why_not and choice == "auto" else levels[0]
    among = levels if choice == "auto" else levels[:1]
    return _Library(handle, levels, among), Status(levels[0], reason)


def _can_run(handle: ctypes.CDLL) -> tuple[list[str], str]:
    """The levels that this processor and its system can run; and which of the processor's the
    system refuses, and why (empty: none)."""
    levels, refused = handle.dragoman_levels, handle.dragoman_refused
    levels.restype = refused.restype = ctypes.c_char_p
    return levels().decode().split(), refused().decode()


def levels_offered() -> tuple[str, ...]:
    """The instruction sets among which the fastest may be chosen here, best first; none where there
    are no kernels, and one alone where ``DRAGOMAN_NATIVE`` forces it."""
    library, _ = load()
    return library.offered if library is not None else ()


def training_level(level: str, *precisions: str) -> str | None:
    """The instruction set whose kernels train in one of the ``precisions`` where ``level`` is in
    use: itself, or one behind it; None where no kernels do."""
    library, _ = load()
    if library is None or level not in library.levels:
        return None
    names = [name for name in abi.FUNCTIONS if not name.startswith(("decode_", "beam_"))]
    for candidate in library.levels[library.levels.index(level) :]:
        symbols = (f"dragoman_{candidate}_{name}_{kind}" for name in names for kind in precisions)
        if any(hasattr(library.handle, symbol) for symbol in symbols):
            return candidate
    return None


def decoding_levels() -> tuple[str, ...]:
    """The instruction sets that have int8 kernels of their own, among ``levels_offered``; the one
    that is forced stands for the next behind it that has some."""
    library, _ = load()
    if library is None:
        return ()
    own = [
        level
        for level in library.levels
        if hasattr(library.handle, f"dragoman_{level}_decode_step")
    ]
    return tuple(level for level in own if level in library.offered) or tuple(own[:1])


_in_use: ContextVar[str | None] = ContextVar("dragoman_level", default=None)


def level_in_use() -> str | None:
    """The instruction set whose kernels ``function`` binds; None where there are none."""
    library, status = load()
    wished = _in_use.get()
    return wished if library is not None and wished in library.levels else status.level


@contextmanager
def using(level: str | None) -> Iterator[None]:
    """The kernels of ``level`` meanwhile, in this thread; of None those of the best one. A level
    that cannot be had here changes nothing."""
    token = _in_use.set(level)
    try:
        yield
    finally:
        _in_use.reset(token)


def remedy() -> str:
    return "build it with: python -m dragoman.native.compile"


def without(reason: str) -> tuple[None, Status]:
    line = f"native kernels: {reason}; plain torch is used, which is slower"
    logger.warning(line)
    return None, Status(None, line)


def share_threads() -> bool:
    """Let the kernels run on the threads of torch's OpenMP runtime; False: they use their own.

    Where torch is not imported there are none to share, and nobody who would be in the way.
    """
    library, _ = load()
    return library is not None and "torch" in sys.modules and _share_threads(library.handle)


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
    paths = set(re.findall(r"(/\S*/lib(?:gomp|iomp5|omp)\b\S*)", maps))
    return sorted(paths, key=lambda path: ("torch" not in path, path))


@contextmanager
def own_threads() -> Iterator[None]:
    """All of torch's threads to the kernels' own pool, one to torch's operators, for a while.

    For work of which nearly all is the kernels': on a machine that does other things too, torch's
    threads wait for each other at every operator, and the pool's do not. Of the calling thread
    alone; without a library nothing changes.
    """
    import torch

    library, _ = load()
    threads = torch.get_num_threads()
    if library is None or threads == 1:
        yield
        return
    library.handle.dragoman_own_threads(threads)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        library.handle.dragoman_own_threads(0)


def function(name: str, level: str | None = None) -> Any | None:
    """Bind kernel ``name`` of the best level from ``level`` on (None: the one in use) that has it;
    None if there is none.

    Pass tensors and arrays by where they lie (``pointers.py``); ``abi.py`` says what it takes.
    """
    return _bind(name, level or level_in_use(), ctypes.CFUNCTYPE)


def functions_of(prefix: str) -> SimpleNamespace | None:
    """Return the functions of ``abi.py`` whose names begin with ``prefix``, by the rest of their
    names, for the level in use. Returns None if one is missing."""
    names = [name for name in abi.FUNCTIONS if name.startswith(prefix)]
    functions = {name.removeprefix(prefix): function(name) for name in names}
    return None if None in functions.values() else SimpleNamespace(**functions)


def kernel(name: str, level: str | None = None) -> Any:
    """``function`` where the library is loaded and a level has it."""
    routine = function(name, level)
    assert routine is not None, "ask is_loaded() or trains() first"
    return routine


def quick_function(name: str) -> Any:
    """A kernel that is too short to let other threads in: it keeps Python's lock. The library is
    loaded."""
    routine = _bind(name, level_in_use(), ctypes.PYFUNCTYPE)
    assert routine is not None, "ask is_loaded() first"
    return routine


@cache
def _bind(name: str, first: str | None, kind: Callable[..., Any]) -> Any | None:
    library, _ = load()
    if library is None:
        return None
    share_threads()
    levels = library.levels
    for level in (*levels[levels.index(first or levels[0]) :], None):
        symbol = f"dragoman_{level}_{name}" if level else f"dragoman_{name}"
        exported = getattr(library.handle, symbol, None)
        if exported is not None:
            # A fresh object, so that two bindings never share argument types.
            argument_types, result = abi.signature(name)
            address = ctypes.cast(exported, ctypes.c_void_p).value or 0
            return kind(result, *argument_types)(address)
    return None
