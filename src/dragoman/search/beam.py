"""One step of beam search over all sentences at once, in numpy and in native code.

A *row* is a live hypothesis: one that has not ended. The rows of one search form a *group*. A step
ranks the continuations of all rows of a group together, best first. A continuation by the end
symbol that is among the first ``width`` has ended; the first ``width`` of the other continuations
go on. In a group that ``shrinks``, only those of them that are among the first ``width`` of all go
on, and each ended hypothesis makes the group narrower by one. Groups may differ in width and in
their number of rows, so greedy search (a width of 1), sampling and beams of any width share one
batch.

A step has three parts: ``expand`` ranks the candidates, ``judge`` decides which groups are done,
and ``move`` continues the other groups. Between them the scheduler stores the hypotheses that have
ended. ``PlainBeam`` computes them in numpy. ``NativeBeam`` calls native code, which works on the
arrays of a ``BeamState`` where they are in memory (``native/src/search.cpp``). Its three parts are
so short that they keep Python's lock (GIL); ``run``, which takes whole steps with those of the
model, releases it.

Shapes: N rows, G groups, k candidates per row, C continuations that a group ranks, F forbidden
tokens per row.
"""

from __future__ import annotations

import numpy as np

from dragoman.native import abi, library
from dragoman.native.abi import Step, at
from dragoman.native.loader import kernel, quick_function
from dragoman.search.beam_state import BeamState
from dragoman.search.hypothesis import Floats32, Integers


def drop_forbidden(log_probabilities: Floats32, ids: Integers, forbidden: Integers) -> Floats32:
    """Return the candidates (N, k), with -inf where an id is among the ``forbidden`` (N, F) of its
    row."""
    is_forbidden = (ids[:, :, None] == forbidden[:, None, :]).any(axis=2)
    return np.where(is_forbidden, np.float32(-np.inf), log_probabilities)


class PlainBeam:
    """The three parts of a step, computed with numpy on the arrays of a ``BeamState``."""

    def __init__(self, live: BeamState) -> None:
        self._live = live
        self._log_probabilities = np.zeros((0, 0), np.float32)

    def expand(
        self, log_probabilities: Floats32, ids: Integers, eos: int, forbidden: Integers | None
    ) -> int:
        """Fill ``looked`` with the best continuations of each group, and ``all_ended`` with the
        hypotheses that have ended and are better than the worst that their group keeps. Return the
        number of the latter.

        ``log_probabilities`` fp32 and ``ids`` int64 are the candidates (N, k) that ``best``
        returns, each row's best first. Candidates of -inf or NaN and ``forbidden`` (N, F) tokens
        are never chosen.
        """
        live, groups = self._live, self._live.groups
        looked = live.looked
        self._log_probabilities = log_probabilities
        if forbidden is not None:
            self._log_probabilities = drop_forbidden(log_probabilities, ids, forbidden)
        rows, shrinks = groups["rows"], groups["shrinks"]
        width = groups["width"] - shrinks * groups["ended"]
        k = ids.shape[1]
        with np.errstate(invalid="ignore"):  # what is no number is never chosen
            scores = (live.totals[:, None] + self._log_probabilities).ravel()  # (N, k) -> (N k,)
        first = ((rows.cumsum() - rows) * k)[:, None]  # (G, 1)
        cells = np.arange(int(rows.max()) * k)
        grid = scores.take(first + cells, mode="clip")  # (G, most rows x k)
        grid[cells >= (rows * k)[:, None]] = -np.inf
        # Of C = 2 width at most ``width`` are ends (one per row): enough are left to go on.
        columns = min(looked.shape[1], len(cells))
        order = (-grid).argsort(axis=1, kind="stable")[:, :columns]  # (G, columns)
        total = np.take_along_axis(grid, order, axis=1)
        token = ids.ravel().take(first + order, mode="clip")
        live_ones, is_end, place = total > -np.inf, token == eos, np.arange(columns)
        ends = live_ones & is_end & (place < width[:, None])
        goes_on = live_ones & ~is_end & (groups["length"] < groups["limit"])[:, None]
        goes_on &= goes_on.cumsum(axis=1) <= width[:, None]
        # Of a group that splits, the end symbol is one of the alternatives.
        is_narrow = groups["splits"] & (groups["length"] == groups["prefix"]) | shrinks
        goes_on &= ~is_narrow[:, None] | (place < width[:, None])
        looked["total"] = -np.inf
        looked["ends"] = looked["goes_on"] = False
        for name, value in (
            ("candidate", first + order),
            ("token", token),
            ("total", total),
            ("ends", ends),
            ("goes_on", goes_on),
        ):
            looked[name][:, :columns] = value
        one_more = groups["shift"] + 1.0  # the end symbol
        penalty = ((one_more + groups["length"]) / one_more) ** groups["alpha"]
        group, column = (ends & (total / penalty[:, None] > groups["worst"][:, None])).nonzero()
        ended = live.all_ended[: len(group)]
        candidate = looked["candidate"][group, column]
        ended["group"] = group
        ended["row"] = candidate // k
        ended["length"] = groups["length"][group]
        ended["end"] = self._log_probabilities.ravel()[candidate]
        return len(group)

    def judge(self) -> bool:
        """Set ``done`` and ``next_rows`` of each group. Return True if any group is done."""
        groups, looked = self._live.groups, self._live.looked
        groups["ended"] += looked["ends"].sum(axis=1)
        counts = looked["goes_on"].sum(axis=1)
        first = looked["goes_on"].argmax(axis=1)
        best = looked["total"][np.arange(len(groups)), first]
        # What is live can at best go on to its greatest length at no cost.
        is_done = groups["worst"] >= best / groups["ceiling"]
        is_done |= groups["ended"] >= groups["quota"]
        is_done &= ~(groups["splits"] & (groups["length"] == groups["prefix"]))
        is_done |= counts == 0
        looked["goes_on"][is_done] = False
        groups["done"] = is_done
        groups["next_rows"] = np.where(is_done, 0, counts)
        return bool(is_done.any())

    def move(self) -> bool:
        """Replace the rows of each group by its continuations that go on, each one token longer.
        Return True if any row moved; ``all_parents`` names the previous row of each row."""
        live, groups, looked = self._live, self._live.groups, self._live.looked
        chosen = looked[looked["goes_on"]]  # (M,)
        place = groups["length"].repeat(groups["next_rows"])
        parents = chosen["candidate"] // self._log_probabilities.shape[1]
        count, before = len(chosen), live.rows
        live.all_tokens[:count] = live.all_tokens[parents]
        live.all_log_probabilities[:count] = live.all_log_probabilities[parents]
        live.rows = count
        rows = np.arange(count)
        live.all_tokens[rows, place] = chosen["token"]
        costs = self._log_probabilities.ravel()[chosen["candidate"]]
        live.all_log_probabilities[rows, place] = costs
        live.totals[:] = chosen["total"]
        live.all_last[:count] = chosen["token"]
        live.all_parents[:count] = parents
        groups["rows"] = groups["next_rows"]
        groups["length"] += 1
        return count != before or bool((parents != rows).any())

    def run(
        self, step: Step, k: int, eos: int, forbidden: Integers, steps: int, enough: int
    ) -> tuple[int, bool]:
        """Take up to ``steps`` steps, including those of the model, of a batch whose searches are
        all ``plain``, until groups that may have ``enough`` rows in all are done.

        Return the number of steps taken (here always 0), and True if any group is done: such a
        group has no rows left, and ``all_found`` holds its result. ``forbidden`` (F,): tokens that
        no output may hold.
        """
        return 0, False


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
