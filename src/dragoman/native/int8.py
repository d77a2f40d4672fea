"""Linear maps in int8 for models whose steps torch runs (``src/int8.cpp``): in inference alone.

A map's weights are packed once, with one scale for each output; rows are fp32 and quantised as they
come, each by its greatest number. What stands behind a map (an LSTM's gates, a gated linear unit,
the choice of the best tokens) is done where the product is.

P rows, K inputs, N outputs, g groups of outputs.
"""

from __future__ import annotations

import weakref

import torch
from torch import Tensor

from dragoman.native import loader
from dragoman.native.pointers import address

MAX_BEST = 64
"""Up to this k the best outputs are kept while products pass by."""


def is_supported() -> bool:
    """True if this machine has the int8 kernels."""
    return loader.functions_of("int8_") is not None


class Int8Map:
    """y = x Wᵀ + b: (P, K) -> (P, N). Later changes of W and b do not show.

    With g groups W is (g x N, K), and only what needs all groups of an output can be asked for:
    ``gate`` of two, ``lstm`` and ``recur`` of four. ``rows`` gives these their gates, in an order
    of their own.
    """

    dtype = torch.float32
    """The type of rows and results."""

    def __init__(self, weight: Tensor, bias: Tensor | None, groups: int = 1) -> None:
        kernels = loader.functions_of("int8_")
        assert kernels is not None, "ask supported() first"
        self._kernels = kernels
        weight = weight.detach().float().contiguous()
        bias = None if bias is None else bias.detach().float().contiguous()
        self.outputs = weight.shape[0] // groups
        self._handle: int = kernels.new(
            address(weight), address(bias), groups, self.outputs, weight.shape[1]
        )
        weakref.finalize(self, kernels.free, self._handle)
        self.columns: int = kernels.columns(self._handle)
        """The number of columns that ``rows`` returns."""

    def any_rows(self, x: Tensor) -> Tensor:
        """(..., K) of any type -> (..., columns)."""
        rows = _rows(x)
        return self.rows(rows, rows.new_empty(len(rows), self.columns)).view(*x.shape[:-1], -1)

    def rows(self, x: Tensor, out: Tensor, *, more: bool = False) -> Tensor:
        """(P, K) fp32 -> ``out`` (P, columns), which may lie in wider rows; ``more``: added to what
        is there."""
        x = _rows(x)
        self._kernels.rows(
            self._handle, address(x), x.stride(0), len(x), more, address(out), out.stride(0)
        )
        return out

    def best(self, x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k best outputs of a map without bias, k at most ``MAX_BEST`` and N, best first:
        log-probabilities (P, k) and which they are (P, k)."""
        x = _rows(x)
        scores, ids = x.new_empty(len(x), k), x.new_empty(len(x), k, dtype=torch.int64)
        self._kernels.best(
            self._handle, address(x), x.stride(0), len(x), k, address(scores), address(ids)
        )
        return scores, ids

    def gate(self, x: Tensor) -> Tensor:
        """A σ(B) of two groups A and B: (..., K) -> (..., N)."""
        rows = _rows(x)
        out = rows.new_empty(len(rows), self.outputs)
        self._kernels.gated(self._handle, address(rows), rows.stride(0), len(rows), address(out))
        return out.view(*x.shape[:-1], -1)

    def lstm(self, gates: Tensor, hidden: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """A step: gates (P, columns) of another such map, hidden vectors and cells (P, N) -> those
        after it (``native/lstm.py``)."""
        gates, hidden, cells = gates.contiguous(), hidden.contiguous(), cells.clone()
        out = torch.empty_like(hidden)
        self._kernels.lstm(
            self._handle, address(gates), address(hidden), len(hidden), address(cells), address(out)
        )
        return out, cells

    def recur(
        self,
        gates: Tensor,
        places: Tensor,
        sizes: list[int],
        begin: tuple[Tensor, Tensor],
        out: Tensor,
    ) -> Tensor:
        """All steps of B sequences, the longest first -> cells (P, N); ``out`` (P, N) becomes the
        hidden vectors.

        ``gates`` (P, columns) and ``out`` may lie in wider rows. ``places`` (P,) are rows in the
        order of steps, of which each takes the first ``sizes`` sequences; ``begin`` (B, N) hidden
        vectors and cells.
        """
        hidden, cells = (state.float().contiguous() for state in begin)
        counts = torch.tensor(sizes, dtype=torch.int64)
        kept = out.new_empty(out.shape)
        self._kernels.recur(
            self._handle, address(gates), gates.stride(0), address(places), address(counts),
            len(sizes), len(hidden), address(hidden), address(cells), address(out), out.stride(0),
            address(kept),
        )  # fmt: skip
        return kept


def _rows(x: Tensor) -> Tensor:
    """(..., K) -> (P, K) as the kernels read them."""
    rows = x.reshape(-1, x.shape[-1]).to(torch.float32)
    return rows if rows.stride(1) == 1 or rows.shape[1] == 1 else rows.contiguous()
