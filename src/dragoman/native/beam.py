"""The parts of a search step in native code (``src/search.cpp``).

``expand``, ``judge`` and ``move`` are too short to let other threads in, so they keep Python's
lock; ``run``, which lets the model take its steps too, gives it up.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from dragoman.native import abi, loader
from dragoman.native.abi import POINTER


@dataclass(frozen=True)
class Kernels:
    """The functions; structs are handed over by ``at``."""

    expand: Any
    judge: Any
    move: Any
    run: Any

    @classmethod
    def bind(cls) -> Kernels | None:
        """None where there is no library."""
        expand, judge, move = map(_with_lock, ("beam_expand", "beam_judge", "beam_move"))
        run = loader.function("beam_run")
        if expand is None or judge is None or move is None or run is None:
            return None
        return cls(expand, judge, move, run)


def at(struct: ctypes.Structure) -> int:
    """Where it lies; good as long as it is kept."""
    return ctypes.addressof(struct)


def _with_lock(name: str) -> Any | None:
    found = loader.function(name)
    return None if found is None else _bound(name, ctypes.cast(found, POINTER).value or 0)


@cache
def _bound(name: str, address: int) -> Any:
    argument_types, result = abi.signature(name)
    return ctypes.PYFUNCTYPE(result, *argument_types)(address)
