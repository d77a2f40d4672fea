"""Finite scalar quantisation (Mentzer et al., 2023): a few bounded numbers, each rounded to one of
a few levels. What they make together is a code. There is no table of codes to learn, and so none of
which parts could fall out of use.

    f(z) = tanh(z + s) h - o        h = (L - 1)(1 - ε) / 2,  o = ½ for an even L, else 0
    quantised = f(z) + stop_gradient(round(f(z)) - f(z))

s = artanh(o / h), so that z = 0 is mapped to 0. A gradient passes through the rounding as if it
were not there (Bengio et al., 2013).

Shapes: P rows, N numbers of a code, each with L_n levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_EPSILON = 1e-3
"""Keeps the outermost levels within reach of tanh, and no further level (the paper's code)."""


class FiniteScalars:
    """Codes of ``len(levels)`` numbers: the product of ``levels`` is how many there are."""

    def __init__(self, levels: Sequence[int]) -> None:
        self.levels = tuple(levels)
        self.count = math.prod(self.levels)
        self._steps = tuple(math.prod(self.levels[:n]) for n in range(len(self.levels)))

    def bounded(self, z: Tensor) -> Tensor:
        """(P, N) any numbers -> such as are rounded to one of their levels."""
        levels = z.new_tensor(self.levels)
        half = (levels - 1) * (1 - _EPSILON) / 2
        offset = torch.where(levels % 2 == 0, 0.5, 0.0).to(z.dtype)
        return torch.tanh(z + torch.atanh(offset / half)) * half - offset

    def quantised(self, z: Tensor) -> Tensor:
        """(P, N) -> levels around 0, as numbers through which a gradient passes."""
        bounded = self.bounded(z)
        return bounded + (bounded.round() - bounded).detach()

    def codes(self, quantised: Tensor) -> Tensor:
        """(P, N) levels around 0 -> (P,) int64, from 0."""
        return ((quantised.round().long() + self._zero(quantised)) * self._step(quantised)).sum(-1)

    def levels_of(self, codes: Tensor) -> Tensor:
        """``codes`` undone: (P,) -> (P, N) levels around 0, as fp32."""
        counts = torch.tensor(self.levels, device=codes.device)
        digits = codes[:, None] // self._step(codes) % counts
        return (digits - self._zero(codes)).float()

    def scaled(self, quantised: Tensor) -> Tensor:
        """Levels around 0 -> numbers from -1 to 1, which a decoder reads."""
        return quantised / self._zero(quantised).to(quantised.dtype)

    def _zero(self, like: Tensor) -> Tensor:
        """(N,) how many levels of each number lie below 0."""
        return torch.tensor([level // 2 for level in self.levels], device=like.device)

    def _step(self, like: Tensor) -> Tensor:
        return torch.tensor(self._steps, device=like.device)
