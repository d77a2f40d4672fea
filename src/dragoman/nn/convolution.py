"""Convolutions over packed rows, and weight normalisation.

A convolution of width k is one linear map of windows: each row next to its k - 1 neighbours of the
same sequence, zeros where there is none. Nothing is computed for padding.

Shapes: P packed rows, k width of the window, D width of a row, N outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.native import linear as native
from dragoman.native.int8 import Int8Map
from dragoman.nn.layout import Layout
from dragoman.nn.linear import Computing, InferenceLinear, Precision, lay_out, linear


@dataclass(frozen=True)
class ConvolutionWindows:
    """The windows of all rows: the neighbours of each row within its own sequence."""

    rows: Tensor
    """(P, k) int64: the rows in the window of each row; P for a cell outside of its sequence."""
    back: Tensor
    """(P, k): for each row and each place of a window, the row in whose window it is at that place;
    P if there is none."""

    @classmethod
    def around(cls, layout: Layout, width: int) -> ConvolutionWindows:
        """Make windows with as many neighbours before each row as after it. ``width`` must be
        odd."""
        return cls._of(layout, torch.arange(-(width // 2), width // 2 + 1))

    @classmethod
    def behind(cls, layout: Layout, width: int) -> ConvolutionWindows:
        """Make windows of ``width`` rows that end with the row itself."""
        return cls._of(layout, torch.arange(1 - width, 1))

    @classmethod
    def _of(cls, layout: Layout, offsets: Tensor) -> ConvolutionWindows:
        offsets = offsets.to(layout.device)
        rows = torch.arange(layout.total, device=layout.device)[:, None]
        lengths = torch.tensor(layout.lengths, dtype=torch.int64, device=layout.device)
        ends = lengths[layout.sequence][:, None]

        def at(steps: Tensor) -> Tensor:
            places = layout.positions[:, None] + steps
            return torch.where((places >= 0) & (places < ends), rows + steps, layout.total)

        return cls(at(offsets), at(-offsets))


def unfold(x: Tensor, windows: ConvolutionWindows) -> Tensor:
    """Put the rows of each window next to each other: (P, D) -> (P, k x D)."""
    out: Tensor = _Unfold.apply(x, windows)  # type: ignore[no-untyped-call]
    return out


class _Unfold(torch.autograd.Function):
    """The autograd function of ``unfold``. Its backward pass gathers rows, too: adding each one up
    where it came from would be slow."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, windows: ConvolutionWindows) -> Tensor:
        ctx.windows = windows
        return F.pad(x, (0, 0, 0, 1)).index_select(0, windows.rows.flatten()).view(len(x), -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        back: Tensor = ctx.windows.back
        rows, width = back.shape
        cells = F.pad(grads[0], (0, 0, 0, 1)).view((rows + 1) * width, -1)
        places = back * width + torch.arange(width, device=back.device)
        return cells.index_select(0, places.flatten()).view(rows, width, -1).sum(dim=1), None


class NormedLinear(Computing):
    """A weight-normalised linear map, y = x Wᵀ + b with W = g v / ‖v‖: a length g and a direction v
    for each output (Salimans and Kingma, 2016). (..., K) -> (..., N).

    ``gated``: the result is A σ(B), where A and B are the two halves of y: a gated linear unit
    (Dauphin et al., 2017).
    """

    def __init__(self, inputs: int, outputs: int, *, std: float, gated: bool = False) -> None:
        """Initialise W with normal numbers of standard deviation ``std``, and b with 0."""
        super().__init__()
        self._gated = gated
        self.direction = nn.Parameter(torch.empty(outputs, inputs))
        nn.init.normal_(self.direction, std=std)
        self.length = nn.Parameter(self.direction.detach().norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self._prepared: InferenceLinear | Int8Map | None = None
        self._prepared_gated: Int8Map | None = None
        self.choose("fp32", by_kernels=False)

    @property
    def weight(self) -> Tensor:
        """(N, K) the matrix W = g v / ‖v‖."""
        of_direction = torch.linalg.vector_norm(self.direction, dim=1)
        weight: Tensor = self.direction * (self.length / of_direction)[:, None]
        return weight

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        self._precision: Precision = precision
        self._by_kernels = by_kernels

    def hidden_matrices(self) -> list[tuple[nn.Parameter, int]]:
        return [(self.direction, 1)]

    def prepare(self, dtype: torch.dtype) -> None:
        super().prepare(dtype)
        if self._gated and dtype == torch.int8:
            self._prepared_gated = Int8Map(self.weight, self.bias, groups=2)
        else:
            self._prepared = lay_out(self.weight, self.bias, dtype)

    def fits(self, precision: Precision) -> bool:
        outputs, inputs = self.direction.shape
        return native.is_supported(inputs, outputs, precision)

    def forward(self, x: Tensor) -> Tensor:
        if self._prepared_gated is not None:
            return self._prepared_gated.gate(x)
        out = self._linear(x)
        return F.glu(out, dim=-1) if self._gated else out

    def _linear(self, x: Tensor) -> Tensor:
        if self._prepared is not None:
            return self._prepared.any_rows(x)
        weight = self.weight
        if self._by_kernels:
            packed = native.PackedWeights([weight.detach()], self._precision)
            # A view of the bias: kernels add its gradient themselves only where they do W's.
            return native.linear(x, [weight], [self.bias.view(-1)], packed)
        low = weight.detach().bfloat16() if self._precision == "bf16" else None
        return linear(x, weight, self.bias, low)
