"""The parts of a search step in native code (``src/search.cpp``).

``expand``, ``judge`` and ``move`` are too short to let other threads in, so they keep Python's
lock; ``run``, which lets the model take its steps too, gives it up.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from dragoman.native import loader
from dragoman.native.abi import POINTER, WHOLE


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
        expand = _with_lock(
            "beam_expand", *(POINTER, WHOLE, POINTER, POINTER, WHOLE, WHOLE, POINTER, WHOLE, WHOLE)
        )
        judge = _with_lock("beam_judge", POINTER, WHOLE)
        move = _with_lock("beam_move", POINTER, WHOLE, WHOLE, POINTER, WHOLE)
        run = loader.function("beam_run", POINTER, POINTER, POINTER)
        if expand is None or judge is None or move is None or run is None:
            return None
        return cls(expand, judge, move, run)


def at(struct: ctypes.Structure) -> int:
    """Where it lies; good as long as it is kept."""
    return ctypes.addressof(struct)


def _with_lock(name: str, *argument_types: Any) -> Any | None:
    found = loader.function(name, *argument_types, result=WHOLE)
    if found is None:
        return None
    return _bound(ctypes.cast(found, ctypes.c_void_p).value or 0, argument_types)


@cache
def _bound(address: int, argument_types: tuple[Any, ...]) -> Any:
    return ctypes.PYFUNCTYPE(WHOLE, *argument_types)(address)
