"""The int8 Transformer of ``src/decode.cpp``: its packed weights, and searches in native memory.

Nothing here knows what the numbers mean; ``models/transformer/int8_search.py`` does. Arrays are
numpy's, handed over as the kernels read them: contiguous, ids int64, lengths int32, rows fp32,
flags one byte. Nothing needs torch.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from ctypes import addressof, c_int64, c_uint8, c_void_p, cast
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.native import loader
from dragoman.native.abi import Factors, Shape

Array = npt.NDArray[Any]

MAX_IDLE = 8
"""States kept for the next search: their pages of memory are the dear part of a short one."""


def is_supported() -> bool:
    """True if this machine has the decoder's kernels."""
    return loader.functions_of("decode_") is not None


class NativeModel:
    """Weights packed for int8 products. Any number of threads and states may share them."""

    def __init__(self, shape: Shape, factors: Factors) -> None:
        """Allocates room for the weights; ``pack`` or another model's ``parts`` fill it."""
        kernels = loader.functions_of("decode_")
        assert kernels is not None, "ask supported() first"
        self.kernels = kernels
        self._handle: int = kernels.model_new(addressof(shape), addressof(factors))
        self._idle: list[int] = []
        weakref.finalize(self, _free_model, kernels, self._handle, self._idle)
        self.width: int = kernels.model_width(self._handle)
        """The width of the rows of a table of positions: model_dim rounded up, the rest zero."""
        self.best_address = cast(kernels.best, c_void_p).value
        self.select_address = cast(kernels.state_select, c_void_p).value

    def pack(self, weights: Sequence[Array | None]) -> None:
        """Once, into a new model. ``weights``: fp32, in the order of ``pack_model`` in
        ``src/decode_pack.h``; not needed afterwards."""
        self.kernels.model_pack(self._handle, (c_void_p * len(weights))(*map(place, weights)))

    @property
    def parts(self) -> list[npt.NDArray[np.uint8]]:
        """The memory of all weights, of sizes and in an order that shape and instruction set
        decide; good as long as the model."""
        count = self.kernels.model_parts(self._handle, None, None)
        places, sizes = (c_void_p * count)(), (c_int64 * count)()
        self.kernels.model_parts(self._handle, places, sizes)
        return [
            np.frombuffer((c_uint8 * size).from_address(at or 0), np.uint8)
            for at, size in zip(places, sizes, strict=True)
        ]

    def use_shortlist(
        self,
        always: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int32],
        candidates: npt.NDArray[np.int32],
    ) -> None:
        """From now on ``best`` chooses among these target tokens (``models/shortlist.py``)."""
        self.kernels.model_shortlist(
            self._handle, always.ctypes.data, len(always), offsets.ctypes.data,
            candidates.ctypes.data,
        )  # fmt: skip

    def encode(
        self, tokens: Array, lengths: Array, key_mask: Array | None, positions: int, out: Array
    ) -> bool:
        """tokens (P,) of ``lengths`` (B,) -> ``out`` (P, D); False if one is not in the vocabulary.

        ``positions``: where the table of positions lies. ``key_mask`` (P,).
        """
        done = self.kernels.encode(
            self._handle, place(tokens), place(lengths), len(lengths), place(key_mask),
            positions, place(out),
        )  # fmt: skip
        return bool(done == 0)

    def take_state(self) -> int:
        """A native state without rows: one that has served, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return int(self.kernels.state_new(self._handle))

    def leave_state(self, handle: int) -> None:
        if len(self._idle) >= MAX_IDLE:
            self.kernels.state_free(handle)
            return
        self.kernels.state_select(handle, None, 0)
        self._idle.append(handle)


class NativeState:
    """A search in native memory, without rows at first. One thread at a time."""

    def __init__(self, model: NativeModel) -> None:
        self._model = model
        self._kernels = model.kernels
        self.handle = model.take_state()
        # It holds the model: where both are found unreachable at once, the state goes first.
        weakref.finalize(self, model.leave_state, self.handle)

    @property
    def rows(self) -> int:
        """N, the number of rows under way."""
        return int(self._kernels.state_rows(self.handle))

    def lengths(self, out: Array) -> None:
        """Into ``out`` (N,): tokens taken in by each row."""
        self._kernels.state_lengths(self.handle, place(out))

    def select(self, rows: Array) -> bool:
        """Keep these rows; False if there is none of such a number, and nothing has changed."""
        return bool(self._kernels.state_select(self.handle, place(rows), len(rows)))

    def admit(
        self, encoded: Array, lengths: Array, key_mask: Array | None, tokens: Array | None
    ) -> None:
        """New sources (P, D) of ``lengths`` (B,), a row each."""
        self._kernels.state_admit(
            self.handle, place(encoded), place(lengths), len(lengths), place(key_mask),
            place(tokens),
        )  # fmt: skip

    def flag_allowed(self, out: Array) -> None:
        """Into ``out`` (N, V) bool: which tokens the shortlist lets follow."""
        self._kernels.state_allowed(self.handle, place(out))

    # The two below return 0 when done. Else nothing has changed: -1, a token is none of the
    # vocabulary; -2, N is not the number of rows; n > 0, the table of positions must have n rows.

    def step(self, tokens: Array, positions: int, known: int, logits: Array) -> int:
        """tokens (N, t) -> ``logits`` (N, V). ``positions`` is a table of ``known`` rows."""
        rows, new = tokens.shape
        given = (place(tokens), rows, new, positions, known)
        return int(self._kernels.step(self.handle, *given, place(logits)))

    def best(
        self, tokens: Array, positions: int, known: int, log_probabilities: Array, ids: Array
    ) -> int:
        """tokens (N, t) -> the best ``log_probabilities`` (N, k) and ``ids`` (N, k)."""
        rows, new = tokens.shape
        given = (place(tokens), rows, new, positions, known)
        out = (ids.shape[1], place(log_probabilities), place(ids))
        return int(self._kernels.best(self.handle, *given, *out))


def place(array: Array | None) -> int | None:
    """The address of an array's first element; None (a null pointer) for no array."""
    if array is None:
        return None
    assert array.flags.c_contiguous
    at: int = array.__array_interface__["data"][0]
    return at


def _free_model(kernels: SimpleNamespace, handle: int, idle: list[int]) -> None:
    while idle:
        kernels.state_free(idle.pop())
    kernels.model_free(handle)
