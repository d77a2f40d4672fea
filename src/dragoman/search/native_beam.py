"""The three parts of a search step in native code, in place of ``PlainBeam``.

The arrays of a ``Live`` are handed over as they lie in memory (``native/src/search.cpp``). The
calls are too short to let other threads in, so they keep Python's lock.
"""

from __future__ import annotations

import ctypes
from typing import Any

from torch import Tensor

from dragoman.native import library
from dragoman.search.beam import BeamStep, PlainBeam
from dragoman.search.hypothesis import Integers
from dragoman.search.live import Live

POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64


class _Arrays(ctypes.Structure):
    """Where the arrays of a ``Live`` lie: struct Live of search.cpp."""

    _fields_ = (
        ("groups", POINTER),
        ("looked", POINTER),
        ("ended", POINTER),
        ("tokens", POINTER),
        ("log_probabilities", POINTER),
        ("totals", POINTER),
        ("last", POINTER),
        ("parents", POINTER),
        ("places", WHOLE),
        ("columns", WHOLE),
    )


def _bind(name: str, *argument_types: Any) -> Any | None:
    """A function of the library that runs under Python's lock; None if there is no library."""
    found = library.function(name, *argument_types, result=WHOLE)
    if found is None:
        return None
    address = ctypes.cast(found, ctypes.c_void_p).value
    return ctypes.PYFUNCTYPE(WHOLE, *argument_types)(address or 0)


class NativeBeam:
    """The three parts, each one call."""

    def __init__(self, live: Live, expand: Any, judge: Any, move: Any) -> None:
        self._live = live
        self._expand, self._judge, self._move = expand, judge, move
        self._arrays = _Arrays()
        self._address = ctypes.addressof(self._arrays)
        self._seen = -1

    def expand(
        self, log_probabilities: Tensor, ids: Tensor, eos: int, forbidden: Integers | None
    ) -> int:
        live = self._live
        if live.moves != self._seen:
            self._find()
        # Kept for ``move``.
        self._candidates = log_probabilities.contiguous()
        self._k = ids.shape[1]
        at, count, stride = None, 0, 0
        if forbidden is not None and forbidden.shape[1]:
            assert forbidden.shape[1] == 1 or forbidden.strides[1] == forbidden.itemsize
            at, count = forbidden.ctypes.data, forbidden.shape[1]
            stride = forbidden.strides[0] // forbidden.itemsize
        return int(
            self._expand(
                self._address,
                len(live.pools),
                self._candidates.data_ptr(),
                ids.contiguous().data_ptr(),
                self._k,
                eos,
                at,
                count,
                stride,
            )
        )

    def judge(self) -> bool:
        return bool(self._judge(self._address, len(self._live.pools)))

    def move(self) -> bool:
        live = self._live
        result = self._move(
            self._address, len(live.pools), live.rows, self._candidates.data_ptr(), self._k
        )
        live.rows = result >> 1
        return bool(result & 1)

    def _find(self) -> None:
        live, arrays = self._live, self._arrays
        arrays.groups = live.all_groups.ctypes.data
        arrays.looked = live.all_looked.ctypes.data
        arrays.ended = live.all_ended.ctypes.data
        arrays.tokens = live.all_tokens.ctypes.data
        arrays.log_probabilities = live.all_log_probabilities.ctypes.data
        arrays.totals = live.all_totals.ctypes.data
        arrays.last = live.all_last.data_ptr()
        arrays.parents = live.all_parents.data_ptr()
        arrays.places = live.all_tokens.shape[1]
        arrays.columns = live.all_looked.shape[1]
        self._seen = live.moves


def fastest_beam(live: Live) -> BeamStep:
    """Native where the library was found, else plain."""
    if library.available():
        expand = _bind(
            "beam_expand", *(POINTER, WHOLE, POINTER, POINTER, WHOLE, WHOLE, POINTER, WHOLE, WHOLE)
        )
        judge = _bind("beam_judge", POINTER, WHOLE)
        move = _bind("beam_move", POINTER, WHOLE, WHOLE, POINTER, WHOLE)
        if expand is not None and judge is not None and move is not None:
            return NativeBeam(live, expand, judge, move)
    return PlainBeam(live)
