"""The three parts of a search step in native code, in place of ``PlainBeam``; and whole steps.

The arrays of a ``Live`` are handed over as they lie in memory (``native/src/search.cpp``). The
three parts are too short to let other threads in, so they keep Python's lock; ``run``, which lets
the model take its steps too, gives it up.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor

from dragoman.native import library
from dragoman.native.abi import Step
from dragoman.search.beam import BeamStep, PlainBeam, Ran
from dragoman.search.hypothesis import Integers
from dragoman.search.live import Live

POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64


class _Arrays(ctypes.Structure):
    """Where the arrays of a ``Live`` lie: struct Live of search.cpp."""

    _fields_ = (
        ("groups", POINTER),
        ("looked", POINTER),
        ("ended", POINTER),
        ("found", POINTER),
        ("found_tokens", POINTER),
        ("found_log_probabilities", POINTER),
        ("tokens", POINTER),
        ("log_probabilities", POINTER),
        ("totals", POINTER),
        ("last", POINTER),
        ("parents", POINTER),
        ("places", WHOLE),
        ("columns", WHOLE),
    )


class _Run(ctypes.Structure):
    """What is asked of some steps and what came of them: struct Run of search.cpp."""

    _fields_ = (
        ("groups", WHOLE),
        ("rows", WHOLE),
        ("k", WHOLE),
        ("eos", WHOLE),
        ("steps", WHOLE),
        ("enough", WHOLE),
        ("log_probabilities", POINTER),
        ("ids", POINTER),
        ("forbidden", POINTER),
        ("count", WHOLE),
        ("any_done", WHOLE),
        ("wrong", WHOLE),
    )


def _bind(name: str, *argument_types: Any) -> Any | None:
    """A function of the library that runs under Python's lock; None if there is no library."""
    found = library.function(name, *argument_types, result=WHOLE)
    if found is None:
        return None
    return _with_lock(ctypes.cast(found, ctypes.c_void_p).value or 0, argument_types)


@cache
def _with_lock(address: int, argument_types: tuple[Any, ...]) -> Any:
    return ctypes.PYFUNCTYPE(WHOLE, *argument_types)(address)


class NativeBeam:
    """The three parts, each one call, and many steps in one call."""

    def __init__(self, live: Live, expand: Any, judge: Any, move: Any, run: Any) -> None:
        self._live = live
        self._expand, self._judge, self._move, self._run = expand, judge, move, run
        self._arrays = _Arrays()
        self._address = ctypes.addressof(self._arrays)
        self._asked = _Run()
        self._asked_address = ctypes.addressof(self._asked)
        self._room: tuple[Tensor, Tensor] | None = None
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

    def run(
        self, step: Step, k: int, eos: int, forbidden: Integers, steps: int, enough: int
    ) -> Ran:
        live, asked = self._live, self._asked
        if live.moves != self._seen:
            self._find()
        cells = len(live.all_totals) * k
        if self._room is None or len(self._room[0]) < cells:
            self._room = torch.empty(cells), torch.empty(cells, dtype=torch.int64)
            asked.log_probabilities = self._room[0].data_ptr()
            asked.ids = self._room[1].data_ptr()
        asked.groups, asked.rows, asked.k, asked.eos = len(live.pools), live.rows, k, eos
        asked.forbidden, asked.count = forbidden.ctypes.data, len(forbidden)
        asked.steps, asked.enough = steps, enough
        self._run(self._address, ctypes.addressof(step), self._asked_address)
        live.rows = asked.rows
        return Ran(asked.steps, bool(asked.any_done), asked.wrong)

    def _find(self) -> None:
        live, arrays = self._live, self._arrays
        arrays.groups = live.all_groups.ctypes.data
        arrays.looked = live.all_looked.ctypes.data
        arrays.ended = live.all_ended.ctypes.data
        arrays.found = live.all_found.ctypes.data
        arrays.found_tokens = live.found_tokens.ctypes.data
        arrays.found_log_probabilities = live.found_log_probabilities.ctypes.data
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
        run = library.function("beam_run", POINTER, POINTER, POINTER)
        if expand is not None and judge is not None and move is not None and run is not None:
            return NativeBeam(live, expand, judge, move, run)
    return PlainBeam(live)
