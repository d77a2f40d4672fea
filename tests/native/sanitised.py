"""Every kernel under AddressSanitizer and UBSan, at every level of this machine: make test-native.

Not a test of pytest: a process of its own, with numpy and ctypes alone, since torch brings an
allocator and an OpenMP of its own that the sanitisers do not get along with. It compiles the
library with checks, starts itself again with libasan before all else, and calls each function that
the library exports with many sizes. What a kernel is handed lies in blocks of exactly its size:
between the red zones of AddressSanitizer, or with its end on the last byte before memory that may
not be touched, which also catches vector instructions that the compiler does not instrument.

It ends with 1 at the first wrong access or overflow, and if a function was left out.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from ctypes import c_float, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.native.abi import Attention, Ended, Found, Group, Looked, Part

ROOT = Path(__file__).parents[2]
COMPILE = ROOT / "src" / "dragoman" / "native" / "compile.py"

WIDTHS = (1, 2, 3, 15, 16, 17, 31, 32, 34, 63, 64, 66, 97, 128, 130, 200)
ROWS = (0, 1, 2, 3, 5, 6, 7, 12, 13, 63, 64, 65, 97, 300)
RATES = (0.0, 0.3, 0.99999)

PROT_NONE = 0

Array = np.ndarray[Any, Any]


# ---- memory


class Memory:
    """Arrays of exactly their size, on the heap or in front of a page that may not be touched."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.guarded = bool(self.random.integers(2))
        self._kept: list[Any] = []

    def keep(self, values: Any, kind: Any = np.float32) -> Array:
        array = np.ascontiguousarray(values, kind)
        if not self.guarded:
            copy = np.empty(array.shape, array.dtype)  # malloc: AddressSanitizer's
            copy[...] = array
            self._kept.append(copy)
            return copy
        size, page = array.nbytes, mmap.PAGESIZE
        whole = -(-max(size, 1) // page) * page
        block = mmap.mmap(-1, whole + page)
        address = ctypes.addressof(c_int.from_buffer(block))
        assert LIBC.mprotect(c_void_p(address + whole), page, PROT_NONE) == 0
        placed = np.frombuffer(block, array.dtype, array.size, whole - size).reshape(array.shape)
        placed[...] = array
        self._kept += [block, placed]
        return placed

    def out(self, *shape: int, kind: Any = np.float32) -> Array:
        """To be written: begins as rubbish."""
        return self.keep(np.full(shape, 77, kind), kind)

    def real(self, *shape: int, scale: float = 1.0) -> Array:
        return self.keep(self.random.standard_normal(shape) * scale)

    def floats(self, kind: str, *shape: int) -> Array:
        """fp32, or bf16 as the top halves of fp32; now and then numbers that are none."""
        values = self.random.standard_normal(shape).astype(np.float32)
        if values.size and self.random.random() < 0.1:
            flat = values.reshape(-1)
            flat[self.random.integers(flat.size)] = self.random.choice(
                [np.nan, np.inf, 3e38, 1e-40]
            )
        if kind == "fp32":
            return self.keep(values)
        return self.keep(values.view(np.uint32) >> 16, np.uint16)

    def room(self, kind: str, *shape: int) -> Array:
        return self.out(*shape, kind=np.float32 if kind == "fp32" else np.uint16)

    def whole(self, low: int, high: int, *shape: int, kind: Any = np.int64) -> Array:
        return self.keep(self.random.integers(low, max(high, low + 1), shape), kind)

    def names(self, rows: int) -> Array | None:
        """Of rows, for dropout, where they have any."""
        return self.pick((None, self.whole(0, 2**31 - 1, rows, kind=np.int32)))

    def pick(self, values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def even(self) -> int:
        return int(self.pick([w for w in WIDTHS if w % 2 == 0]))


LIBC = ctypes.CDLL(None, use_errno=True)


# ---- calling


class Kernels:
    """The functions of one level. Remembers which were called."""

    def __init__(self, library: ctypes.CDLL, level: str, called: set[str]) -> None:
        self._library, self.level, self._called = library, level, called

    def has(self, name: str) -> bool:
        return hasattr(self._library, self._symbol(name))

    def _symbol(self, name: str) -> str:
        return f"dragoman_{self.level}_{name}" if self.level else f"dragoman_{name}"

    def address(self, name: str) -> int:
        self._called.add(self._symbol(name))
        return ctypes.cast(getattr(self._library, self._symbol(name)), c_void_p).value or 0

    def __call__(self, name: str, *arguments: Any, result: Any = None) -> Any:
        """Whole numbers go as int64, floats as float, arrays by their address."""
        self._called.add(self._symbol(name))
        function = getattr(self._library, self._symbol(name))
        function.restype = result
        function.argtypes = None
        return function(*map(_as_c, arguments))


def _as_c(value: Any) -> Any:
    if value is None:
        return c_void_p(None)
    if isinstance(value, np.ndarray):
        return c_void_p(value.ctypes.data)
    if isinstance(value, float):
        return c_float(value)
    if isinstance(value, int):
        return c_int64(value)
    return value


# ---- kernels of training


def rows_and_noise(k: Kernels, m: Memory) -> None:
    """Layer norms, dropout before them, embeddings."""
    rows, width = int(m.pick(ROWS)), int(m.pick(WIDTHS))
    draw = (m.pick(RATES), c_uint64(2**63 + 5), m.names(rows))
    for kind in ("fp32", "bf16"):
        x, base, out = (m.floats(kind, rows, width) for _ in range(3))
        gain, bias = m.real(width), m.real(width)
        normal, scale = m.room(kind, rows, width), m.out(rows)
        for sublayer in (base, None):
            k(f"norm_forward_{kind}", x, sublayer, gain, bias, out, normal, scale, rows, width,
              1e-5, *draw)  # fmt: skip
        sums = m.out(k("norm_sums", rows, width, result=c_int64))
        k(f"norm_backward_{kind}", x, normal, scale, gain, out, m.room(kind, rows, width),
          m.out(width), m.out(width), rows, width, *draw, sums)  # fmt: skip
        for onto in (base, None):
            k(f"dropout_{kind}", onto, x, out, rows, width, *draw)
        vocabulary, longest = int(m.pick((1, 31, 33, 70))), 9
        ids, positions = m.whole(0, vocabulary, rows), m.whole(0, longest, rows)
        matrix, places = m.real(vocabulary, width), m.real(longest, width)
        to = (places, positions, out)
        k(f"embedding_forward_{kind}", matrix, ids, *to, rows, width, 1.5, *draw)
        k(f"embedding_backward_{kind}", x, ids, matrix, vocabulary, rows, width, 1.5, *draw)


def recurrence(k: Kernels, m: Memory) -> None:
    """A step of an LSTM, and the scores of additive attention."""
    rows, width, more = int(m.pick(ROWS)), int(m.pick(WIDTHS)), 3
    for kind in ("fp32", "bf16"):
        gates, again = m.floats(kind, rows + more, 8 * width), m.floats(kind, rows, 4 * width)
        before, active = m.real(rows, width), m.out(rows, 4 * width)
        cells, hidden = m.out(rows, width), m.room(kind, rows, width)
        places = m.whole(0, rows + more, rows)
        k(f"lstm_forward_{kind}", gates, 8 * width, places, m.real(4 * width), again, before,
          active, cells, hidden, rows, width)  # fmt: skip
        for outside in (m.floats(kind, rows + more, width), None):
            of_cell = None if outside is None else m.real(rows + more, width)
            going = int(m.random.integers(rows + 1))
            k(f"lstm_backward_{kind}", outside, width, of_cell, width, places, active, cells,
              before, m.floats(kind, going, width), m.real(rows, width),
              m.room(kind, rows, 4 * width), rows, going, width)  # fmt: skip
        batch, queries, source = (int(m.random.integers(1, n)) for n in (4, 7, 9))
        query, keys = m.floats(kind, batch, queries, width), m.floats(kind, batch, source, width)
        energy = m.real(width)
        allowed = m.keep(m.random.integers(0, 2, (batch, source)), np.uint8)
        sizes = (batch, queries, source, width)
        scores = m.room(kind, batch, queries, source)
        k(f"additive_forward_{kind}", query, keys, energy, allowed, scores, *sizes)
        k(f"additive_backward_{kind}", m.floats(kind, batch, queries, source), query, keys, energy,
          allowed, m.room(kind, batch, queries, width), m.room(kind, batch, source, width),
          m.out(batch, width), *sizes)  # fmt: skip


def maps_in_int8(k: Kernels, m: Memory) -> None:
    """Linear maps of one, two and four groups, what stands behind each, and looks at sources."""
    rows, inputs, outputs, more = int(m.pick(ROWS)), int(m.pick(WIDTHS)), int(m.pick(WIDTHS)), 3
    x, stride = m.floats("fp32", rows, inputs + more), inputs + more

    def made(groups: int, width: int) -> c_void_p:
        bias = m.pick((None, m.real(groups * outputs)))
        weight = m.real(groups * outputs, width)
        sizes = map(c_int, (groups, outputs, width))
        return c_void_p(k("int8_new", weight, bias, *sizes, result=c_void_p))

    one, two, four, again = made(1, inputs), made(2, inputs), made(4, inputs), made(4, outputs)
    columns = k("int8_columns", four, result=c_int)
    for each, width in ((one, outputs), (four, columns)):
        out = m.out(rows, width + more)
        for added in (0, 1):
            k("int8_rows", each, x, stride, c_int(rows), c_int(added), out, width + more)
    for best in (1, 5, 40):
        places = m.out(rows, best), m.out(rows, best, kind=np.int64)
        k("int8_best", one, x, stride, c_int(rows), c_int(best), *places)
    k("int8_gated", two, x, stride, c_int(rows), m.out(rows, outputs))
    gates, hidden = m.real(rows, columns), m.real(rows, outputs)
    cells, out = m.real(rows, outputs), m.out(rows, outputs)
    k("int8_lstm", again, gates, hidden, c_int(rows), cells, out)
    lengths = np.sort(m.random.integers(1, 6, int(m.pick((1, 3, 20)))))[::-1]
    sizes = [int((lengths > step).sum()) for step in range(lengths[0])]
    count, batch = int(lengths.sum()), len(lengths)
    places = m.keep(m.random.permutation(count), np.int64)
    k("int8_recur", again, m.real(count, columns + more), columns + more, places,
      m.keep(sizes, np.int64), c_int(len(sizes)), c_int(batch), m.real(batch, outputs),
      m.real(batch, outputs), m.out(count, outputs + more), outputs + more,
      m.out(count, outputs))  # fmt: skip
    for each in (one, two, four, again):
        k("int8_free", each)
    counts, source = m.whole(0, 5, batch), int(m.random.integers(1, 20))
    asking, allowed = int(counts.sum()), m.keep(m.random.integers(0, 2, (batch, source)), np.uint8)
    for energy, factors in ((None, m.real(batch)), (m.real(inputs), None)):
        k("look", m.real(asking, inputs), m.real(batch, source, inputs),
          m.real(batch, source, outputs), allowed, counts, energy, factors,
          m.out(asking, outputs), *map(c_int, (batch, source, inputs, outputs)), 0.3)  # fmt: skip


def attention(k: Kernels, m: Memory) -> None:
    for kind in ("fp32", "bf16", "pairs"):
        name, stored = ("attention_pairs", "bf16") if kind == "pairs" else ("attention", kind)
        if not k.has(f"{name}_forward_{stored}"):
            continue
        heads = int(m.pick((1, 2, 3)))
        narrow = [w for w in WIDTHS if w < 100 and (w % 2 == 0 or kind != "pairs")]
        width, wide = int(m.pick(narrow)), int(m.pick(narrow))
        lengths = m.random.integers(1, int(m.pick((2, 8, 40, 150))), int(m.pick((0, 1, 4))))
        causal = bool(m.random.integers(2))
        others = lengths if causal else m.random.integers(1, 70, len(lengths))
        starts, key_starts = (
            m.keep(np.concatenate([[0], np.cumsum(n)]), np.int32) for n in (lengths, others)
        )
        count, keys = int(starts[-1]), int(key_starts[-1])
        query, key = m.floats(stored, count, heads * width), m.floats(stored, keys, heads * width)
        value, out = m.floats(stored, keys, heads * wide), m.room(stored, count, heads * wide)
        names = m.names(count)
        tops = m.out(count * heads * (2 if kind == "pairs" else 1))
        at = Attention(
            starts.ctypes.data, key_starts.ctypes.data,
            None if names is None else names.ctypes.data,
            len(lengths), heads, width, wide, heads * width, heads * width, heads * wide,
            heads * wide, causal, 0.3, m.pick(RATES), 9,
        )  # fmt: skip
        k(f"{name}_forward_{stored}", ctypes.byref(at), query, key, value, out, None)
        k(f"{name}_forward_{stored}", ctypes.byref(at), query, key, value, out, tops)
        slopes = [m.room(stored, *part.shape) for part in (query, key, value)]
        k(f"{name}_backward_{stored}", ctypes.byref(at), query, key, value, tops, out,
          *(p for s in slopes for p in (s, s.shape[1])))  # fmt: skip


def products(k: Kernels, m: Memory) -> None:
    """Linear layers and the loss on top of them."""
    for kind in ("fp32", "bf16"):
        if not k.has(f"pack_weights_{kind}"):
            continue
        low = int(kind == "bf16")
        sizes = [m.even() for _ in range(int(m.pick((1, 3))))]
        outputs, inputs, rows = sum(sizes), m.even(), int(m.pick(ROWS))
        if not low and rows % 2:
            inputs, sizes, outputs = inputs + 1, [*sizes[:-1], sizes[-1] + 1], outputs + 1
        weights = [m.real(size, inputs) for size in sizes]
        words = [
            m.out(k(f"packed_words_{kind}", a, b, result=c_int64), kind=np.uint32)
            for a, b in ((outputs, inputs), (inputs, outputs))
        ]
        pointers = m.keep([w.ctypes.data for w in weights], np.uint64)
        k(f"pack_weights_{kind}", pointers, m.keep(sizes, np.int64), len(sizes), inputs, *words)
        x, dy = m.floats(kind, rows, inputs), m.floats(kind, rows, outputs)
        out, dx = m.room(kind, rows, outputs), m.room(kind, rows, inputs)
        hidden, rate, seed = m.floats(kind, rows, inputs), m.pick(RATES), c_uint64(3)
        for bias in (m.real(outputs), None):
            k(f"linear_forward_{kind}", x, inputs, words[0], bias, out, outputs, rows, outputs,
              inputs)  # fmt: skip
        k(f"linear_relu_{kind}", x, inputs, words[0], m.real(outputs), out, outputs, rows, outputs,
          inputs, rate, seed, m.names(rows))  # fmt: skip
        for through in (hidden, None):
            k(f"linear_backward_input_{kind}", dy, outputs, words[1], dx, inputs, rows, outputs,
              inputs, through, 0 if through is None else inputs, rate)  # fmt: skip
        parts = (Part * len(sizes))()
        for i, size in enumerate(sizes):
            place, bias = m.real(size, inputs), m.real(size)
            parts[i] = Part(place.ctypes.data, bias.ctypes.data if i != 1 else None, size, i % 2)
        k(f"linear_backward_weight_{kind}", dy, outputs, x, inputs, ctypes.byref(parts),
          len(sizes), rows, inputs)  # fmt: skip
        wanted = m.whole(0, outputs, rows)
        slopes = m.room(kind, k(f"cross_entropy_slopes_{kind}", rows, outputs, result=c_int64))
        for dhidden, each, dweight in (
            (dx, slopes, m.out(outputs, inputs)), (dx, slopes, None), (None, None, None),
        ):  # fmt: skip
            k(f"cross_entropy_{kind}", x, inputs, *words, wanted, rows, outputs, inputs, 0.1,
              m.out(rows), m.out(rows), dhidden, each, dweight)  # fmt: skip
        pairs = [sorted((size, inputs)) for size in sizes]
        matrices = m.keep([m.real(*pair).ctypes.data for pair in pairs], np.uint64)
        lower, higher = (m.keep([pair[side] for pair in pairs], np.int64) for side in (0, 1))
        k(f"orthogonal_{kind}", matrices, lower, higher, len(pairs))


# ---- translating


class Decoder:
    """A model of random sizes and weights, and one search with it."""

    def __init__(self, k: Kernels, m: Memory) -> None:
        self.k, self.m = k, m
        pick = m.pick
        dim, ffn = int(pick((1, 7, 16, 33, 64, 70))), int(pick((1, 16, 65, 130)))
        heads, key, value = (int(pick(n)) for n in ((1, 2, 3), (1, 4, 16, 17, 32), (1, 5, 16, 32)))
        layers, self.source = (int(pick((1, 2))), int(pick((1, 3)))), int(pick((4, 40, 70)))
        self.shared = bool(m.random.integers(2))
        self.target = self.source if self.shared else int(pick((5, 64, 65, 200)))
        pre, hidden = int(m.random.integers(2)), int(pick((-1, 0)))
        self.dim, scale = dim, float(pick((1.0, 1.0, 1e-30, 1e-41, 1e30, 3e37)))

        def pair(*shape: int) -> Iterator[Array | None]:
            yield m.real(*shape, scale=scale)
            yield m.real(shape[0])

        def norm(there: int = 1) -> Iterator[Array | None]:
            yield from (m.real(dim), m.real(dim)) if there else (None, None)

        def attends() -> Iterator[Array | None]:
            for width in (key, key, value):
                yield from pair(heads * width, dim)
            yield from pair(dim, heads * value)
            yield from norm()

        def feeds() -> Iterator[Array | None]:
            yield from pair(ffn, dim)
            yield from pair(dim, ffn)
            yield from norm()

        weights: list[Array | None] = []
        for _ in range(layers[0]):
            weights += [*attends(), *feeds()]
        for _ in range(layers[1]):
            weights += [*attends(), *attends(), *feeds()]
        weights += [*norm(pre), *norm(pre)]
        embedding = m.real(self.source, dim, scale=scale)
        other = embedding if self.shared else m.real(self.target, dim, scale=scale)
        weights += [embedding, other, other if pick((0, 1)) else m.real(self.target, dim)]
        weights += [m.real(self.target) if pick((0, 1)) else None]
        numbers = [dim, ffn, heads, key, value, *layers, self.source, self.target, pre, hidden]
        zero, activation = pick((-1, 1)), pick((0, 1, 2))
        shape = m.keep([*numbers, self.shared, zero, activation], np.int32)
        factors = m.keep([key**-0.5, dim**0.5, 1e-5])
        pointers = m.keep([0 if w is None else w.ctypes.data for w in weights], np.uint64)
        self.model = k("decode_model_new", shape, factors, result=c_void_p)
        k("decode_model_pack", c_void_p(self.model), pointers)
        if pick((0, 1)):  # as one that was packed before
            packed = self.model
            self.model = k("decode_model_new", shape, factors, result=c_void_p)
            for there, here in zip(self.parts(packed), self.parts(self.model), strict=True):
                assert there[1] == here[1]
                ctypes.memmove(here[0], *there)
            k("decode_model_free", c_void_p(packed))
        self.width = k("decode_model_width", c_void_p(self.model), result=c_int)
        if pick((0, 1)):
            self.learn_shortlist()

    def parts(self, model: Any) -> list[tuple[int, int]]:
        """Address and size of each part of the weights."""
        count = self.k("decode_model_parts", c_void_p(model), None, None, result=c_int)
        places, sizes = self.m.out(count, kind=np.uint64), self.m.out(count, kind=np.int64)
        self.k("decode_model_parts", c_void_p(model), places, sizes, result=c_int)
        return [(int(at), int(size)) for at, size in zip(places, sizes, strict=True)]

    def learn_shortlist(self) -> None:
        m = self.m
        counts = m.random.integers(0, min(6, self.target), self.source)
        offsets = m.keep(np.concatenate([[0], np.cumsum(counts)]), np.int32)
        always = m.whole(0, self.target, int(m.pick((1, 3))), kind=np.int32)
        found = m.whole(0, self.target, int(offsets[-1]), kind=np.int32)
        self.k("decode_model_shortlist", c_void_p(self.model), always, c_int(len(always)), offsets,
               found)  # fmt: skip

    def search(self) -> None:
        k, m, model = self.k, self.m, c_void_p(self.model)
        state = c_void_p(k("decode_state_new", model, result=c_void_p))
        for _ in range(2):
            self.admit(model, state)
            for step in range(6):
                self.step(state, step)
                rows = k("decode_state_rows", state, result=c_int)
                chosen = m.whole(0, rows, int(m.pick((1, rows, 2 * rows))) if rows else 0)
                if len(chosen) <= 200:
                    k(
                        "decode_state_select",
                        state,
                        np.sort(chosen),
                        c_int(len(chosen)),
                        result=c_int,
                    )
                k("decode_state_select", state, m.keep([rows], np.int64), c_int(1), result=c_int)
        many_steps(k, m, self, state)
        k("decode_state_select", state, None, c_int(0), result=c_int)
        k("decode_state_free", state)
        k("decode_model_free", model)

    def admit(self, model: c_void_p, state: c_void_p) -> None:
        k, m = self.k, self.m
        lengths = m.keep(
            m.random.integers(1, int(m.pick((2, 9, 120))), int(m.pick((1, 3)))), np.int32
        )
        total, longest = int(lengths.sum()), int(lengths.max())
        tokens = m.whole(0, self.source, total)
        visible = m.pick((None, m.whole(0, 2, total, kind=np.uint8)))
        positions, encoded = m.real(longest, self.width), m.out(total, self.dim)
        arguments = (lengths, c_int(len(lengths)), visible, positions, encoded)
        assert k("decode_encode", model, tokens, *arguments, result=c_int) == 0
        for wrong in (-1, self.source, 2**62, -(2**63)):
            other = tokens.copy()
            other[-1] = wrong
            assert (
                k("decode_encode", model, m.keep(other, np.int64), *arguments, result=c_int) == -1
            )
        k("decode_state_admit", state, encoded, lengths, c_int(len(lengths)), visible,
          m.pick((None, tokens)))  # fmt: skip

    def step(self, state: c_void_p, step: int) -> None:
        k, m = self.k, self.m
        rows = k("decode_state_rows", state, result=c_int)
        k("decode_state_lengths", state, m.out(rows, kind=np.int64))
        k("decode_state_allowed", state, m.out(rows, self.target, kind=np.uint8))
        new, known = int(m.pick((1, 1, 2))), 64
        positions = m.real(known, self.width)
        tokens = m.whole(0, self.target, rows, new)
        common = (c_int(rows), c_int(new), positions)
        best = int(m.pick([n for n in (1, 2, 5, 16, 17, 64) if n <= self.target]))
        places = (m.out(rows, best), m.out(rows, best, kind=np.int64))
        if step % 2:
            logits = m.out(rows, self.target)
            found = k("decode_step", state, tokens, *common, c_int(known), logits, result=c_int)
        else:
            found = k("decode_best", state, tokens, *common, c_int(known), c_int(best), *places,
                      result=c_int)  # fmt: skip
            assert rows == 0 or 0 <= places[1].min() <= places[1].max() < self.target
        assert found == 0
        for name, rest in (("step", (None,)), ("best", (c_int(best), None, None))):
            for wrong in ((self.target, c_int(known)), (-1, c_int(known)), (0, c_int(0))):
                bad = m.keep(np.full((rows, new), wrong[0]), np.int64)
                told = k(f"decode_{name}", state, bad, *common, wrong[1], *rest, result=c_int)
                assert told != 0 or rows == 0
            more = (c_int(rows + 1), c_int(new), positions, c_int(known))
            assert k(f"decode_{name}", state, None, *more, *rest, result=c_int) == -2


# ---- beam search


class Beam:
    """struct Live over arrays of exactly their size."""

    def __init__(self, m: Memory, rows: list[int], width: int, places: int) -> None:
        groups, room = len(rows), max(1, width * len(rows))
        self.groups = m.keep(np.zeros(groups, Group), Group)
        self.groups["rows"], self.groups["width"] = rows, width
        self.groups["limit"], self.groups["quota"] = places - 1, m.pick((width, 2**62))
        self.groups["alpha"], self.groups["ceiling"] = 0.6, 2.0
        self.groups["worst"], self.groups["keep"] = -np.inf, 1
        self.columns, self.places = 2 * width, places
        self.totals, self.last = m.keep(np.zeros(room), np.float64), m.whole(0, 4, room)
        self.arrays = [
            self.groups,
            m.keep(np.zeros((groups, self.columns), Looked), Looked),
            m.keep(np.zeros(room, Ended), Ended),
            m.keep(np.zeros(groups, Found), Found),
            m.out(groups, places, kind=np.int32), m.out(groups, places),
            m.out(room, places, kind=np.int32), m.out(room, places),
            self.totals, self.last, m.out(room, kind=np.int64),
        ]  # fmt: skip
        fields = [a.ctypes.data for a in self.arrays] + [places, self.columns]
        self.struct = m.keep(fields, np.uint64)


def beam_parts(k: Kernels, m: Memory) -> None:
    width = int(m.pick((1, 2, 4, 7)))
    rows = [int(n) for n in m.random.integers(0, width + 1, int(m.pick((1, 3))))]
    beam, eos = Beam(m, rows, width, 9), 2
    count, best = sum(rows), int(m.pick((1, 2, 5)))
    for _ in range(8):
        logs = -np.sort(m.random.exponential(2.0, (count, best)).astype(np.float32))
        spoiled = m.random.random(logs.shape)
        logs[spoiled < 0.1], logs[spoiled < 0.05] = -np.inf, np.nan
        logs, ids = m.keep(logs), m.whole(0, 6, count, best)
        forbidden = m.whole(0, 6, int(m.pick((0, 2))))
        k("beam_expand", beam.struct, len(rows), logs, ids, best, eos, forbidden, len(forbidden), 0,
          result=c_int64)  # fmt: skip
        k("beam_judge", beam.struct, len(rows), result=c_int64)
        count = k("beam_move", beam.struct, len(rows), count, logs, best, result=c_int64) >> 1


def many_steps(k: Kernels, m: Memory, decoder: Decoder, state: c_void_p) -> None:
    """beam_run, which calls decode_best and decode_state_select by their addresses."""
    rows = k("decode_state_rows", state, result=c_int)
    width, table = int(m.pick((1, 3))), 64
    at_all = m.out(rows, kind=np.int64)
    k("decode_state_lengths", state, at_all)
    if rows == 0 or rows > 60 or at_all.max() > 40:
        return
    beam, best = Beam(m, [1] * rows, width, 9), min(2 * width, decoder.target)
    beam.last[:] = 0
    positions, room = m.real(table, decoder.width), max(1, width * rows)
    step = m.keep([k.address("decode_best"), k.address("decode_state_select"), state.value or 0,
                   positions.ctypes.data, table], np.uint64)  # fmt: skip
    forbidden = m.keep([1], np.int64)
    logs, ids = m.out(room, best), m.out(room, best, kind=np.int64)
    run = m.keep([rows, rows, best, 2, 20, rows * width, logs.ctypes.data, ids.ctypes.data,
                  forbidden.ctypes.data, 1, 0, 0], np.uint64)  # fmt: skip
    Kernels(k._library, "", k._called)("beam_run", beam.struct, step, run)


def threads(k: Kernels, m: Memory) -> None:
    count = int(m.pick((0, 1, 2, 100)))
    seen = np.zeros(max(count, 1), np.int64)
    task = ctypes.CFUNCTYPE(None, c_void_p, c_int64)(lambda _, i: seen.__setitem__(i, seen[i] + 1))
    k("own_threads", c_int(int(m.pick((0, 1, 3)))))
    assert k("threads", result=c_int) > 0
    k("run", count, task, None, c_int(0))
    assert (seen[:count] == 1).all()
    size = int(m.pick((1, 4096, 100_000)))
    block = k("scratch", c_int(7), ctypes.c_size_t(size), result=c_void_p)
    ctypes.memset(block, 1, size)
    assert k("use_openmp", None, None, result=c_int) in (0, 1)
    assert k("fingerprint", result=ctypes.c_char_p)
    k("refused", result=ctypes.c_char_p)
    assert k("abi", result=c_void_p)


# ---- all of it


def work(path: str, levels: list[str], seconds: float, spoil: str | None) -> None:
    library, called = ctypes.CDLL(path), set[str]()
    shared = Kernels(library, "", called)
    can = shared("levels", result=ctypes.c_char_p).decode().split()
    exported = {
        line.split()[-1]
        for line in subprocess.run(
            ["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if " dragoman_" in line
    }
    if spoil:  # does it notice? One row too few, in both kinds of memory.
        of_levels = (Kernels(library, level, called) for level in levels)
        k, m = next(k for k in of_levels if k.has("norm_forward_fp32")), Memory(0)
        m.guarded = spoil == "page"
        k("norm_forward_fp32", m.real(5, 16), None, m.real(16), m.real(16), m.out(4, 16), None,
          None, 5, 16, 1e-5, 0.5, c_uint64(1), None)  # fmt: skip
        return
    parts: tuple[Callable[[Kernels, Memory], None], ...] = (
        rows_and_noise,
        recurrence,
        attention,
        products,
    )
    begin, seed = time.monotonic(), 0
    while seed < 20 or time.monotonic() - begin < seconds:
        seed += 1
        threads(shared, Memory(seed))
        for number in range(5):
            beam_parts(shared, Memory(1000 * seed + number))
        for level in (level for level in levels if level in can):
            k = Kernels(library, level, called)
            for part in parts:
                if part is products or k.has("norm_forward_fp32"):
                    part(k, Memory(seed))
            maps_in_int8(k, Memory(seed))
            Decoder(k, Memory(seed)).search()
    left = {name for name in exported - called if any(f"_{level}_" in name for level in can)}
    left |= {
        name
        for name in exported - called
        if not name.startswith(("dragoman_a", "dragoman_neon")) or name == "dragoman_abi"
    }
    print(f"{seed} rounds, {len(called)} functions, levels {' '.join(levels)}")
    if left:
        sys.exit(f"not called: {' '.join(sorted(left))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of calling")
    parser.add_argument("--library", help="compiled before")
    parser.add_argument("--levels", nargs="*", default=[])
    parser.add_argument("--spoil", choices=["heap", "page"])
    given = parser.parse_args()
    if given.levels:
        return work(given.library, given.levels, given.seconds, given.spoil)
    building = runpy.run_path(str(COMPILE))
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    needs = {
        "amx": "amx_tile",
        "avx512": "avx512_bf16",
        "avx512vnni": "avx512_vnni",
        "avxvnni": "avx_vnni",
        "avx2": "avx2",
        "amxtwin": "avx2",
        "neon": "asimddp",
    }
    levels = [level for level in building["LEVEL_FLAGS"] if needs[level] in flags]
    if not levels or building["find_compiler"]() is None:
        sys.exit("there is no compiler, or this processor has none of the kernels' levels")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(given.library or Path(folder) / "libdragoman.so")
        if not library.exists():
            print(f"compiling with checks for {' '.join(levels)}", flush=True)
            building["compile_library"](library, sanitised=levels)
        compiler = building["find_compiler"]()
        asan = subprocess.run(
            [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        environment = os.environ | {
            "LD_PRELOAD": asan,
            # Python leaves much behind when it ends.
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "PYTHONMALLOC": "malloc",
        }
        command = [sys.executable, __file__, "--library", str(library), "--levels", *levels]
        command += ["--seconds", str(given.seconds)]
        for kind in ("heap", "page"):
            spoiled = subprocess.run(
                [*command, "--spoil", kind], env=environment, capture_output=True, check=False
            )
            if b"AddressSanitizer" not in spoiled.stderr:
                sys.exit(f"a write out of bounds ({kind}) is not noticed: {spoiled.stderr!r}")
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
