"""Native code for the three parts of a search step, instead of ``PlainBeam``, and for whole steps.

Native code works on the arrays of a ``BeamState`` where they are in memory
(``native/src/search.cpp``). ``expand``, ``judge`` and ``move`` are so short that they keep Python's
lock (GIL); ``run``, which includes the model's steps, releases it.
"""

from __future__ import annotations

import numpy as np

from dragoman.native import abi, library
from dragoman.native.abi import Step, at
from dragoman.native.loader import kernel, quick_function
from dragoman.search.beam import PlainBeam
from dragoman.search.beam_state import BeamState
from dragoman.search.hypothesis import Floats32, Integers


class NativeBeam(PlainBeam):
    """A beam in native code: each part of a step is one call, and so are many whole steps."""

    def __init__(self, live: BeamState) -> None:
        """Requires the native library: check ``library.available`` first."""
        self._live = live
        self._expand, self._judge = quick_function("beam_expand"), quick_function("beam_judge")
        self._move, self._run = quick_function("beam_move"), kernel("beam_run")
        self._arrays, self._asked = abi.Live(), abi.Run()
        self._address, self._asked_address = at(self._arrays), at(self._asked)
        self._room: tuple[Floats32, Integers] | None = None
        self._seen = -1

    def expand(
        self, log_probabilities: Floats32, ids: Integers, eos: int, forbidden: Integers | None
    ) -> int:
        live = self._live
        if live.moves != self._seen:
            self._find()
        # Kept for ``move``.
        self._candidates = np.ascontiguousarray(log_probabilities, np.float32)
        ids = np.ascontiguousarray(ids, np.int64)
        self._k = ids.shape[1]
        place, count, stride = None, 0, 0
        if forbidden is not None and forbidden.shape[1]:
            assert forbidden.shape[1] == 1 or forbidden.strides[1] == forbidden.itemsize
            place, count = forbidden.ctypes.data, forbidden.shape[1]
            stride = forbidden.strides[0] // forbidden.itemsize
        return int(
            self._expand(
                self._address,
                len(live.pools),
                self._candidates.ctypes.data,
                ids.ctypes.data,
                self._k,
                eos,
                place,
                count,
                stride,
            )
        )

    def judge(self) -> bool:
        return bool(self._judge(self._address, len(self._live.pools)))

    def move(self) -> bool:
        live = self._live
        result = self._move(
            self._address, len(live.pools), live.rows, self._candidates.ctypes.data, self._k
        )
        live.rows = result >> 1
        return bool(result & 1)

    def run(
        self, step: Step, k: int, eos: int, forbidden: Integers, steps: int, enough: int
    ) -> tuple[int, bool]:
        live, asked = self._live, self._asked
        if live.moves != self._seen:
            self._find()
        cells = len(live.all_totals) * k
        if self._room is None or len(self._room[0]) < cells:
            self._room = np.empty(cells, np.float32), np.empty(cells, np.int64)
            asked.log_probabilities = self._room[0].ctypes.data
            asked.ids = self._room[1].ctypes.data
        asked.groups, asked.rows, asked.k, asked.eos = len(live.pools), live.rows, k, eos
        asked.forbidden, asked.count = forbidden.ctypes.data, len(forbidden)
        asked.steps, asked.enough = steps, enough
        self._run(self._address, at(step), self._asked_address)
        live.rows = asked.rows
        return asked.steps, bool(asked.any_done)

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
        arrays.last = live.all_last.ctypes.data
        arrays.parents = live.all_parents.ctypes.data
        arrays.places = live.all_tokens.shape[1]
        arrays.columns = live.all_looked.shape[1]
        self._seen = live.moves


def fastest_beam(live: BeamState) -> PlainBeam:
    """Return the native beam if the native library was found, else the plain one."""
    return NativeBeam(live) if library.available() else PlainBeam(live)
