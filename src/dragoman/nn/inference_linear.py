"""Linear maps of inference: weights cast and laid out once, for oneDNN or for the int8 kernels.

torch's own ``F.linear`` lays weights out again in every call, and in fp32 asks a library that is
slow on some processors: 2.3 times slower than oneDNN on an AMD Zen 5. The operators used here are
torch's (``torch.compile`` calls them); where a build of torch has none, or they do not agree with
``F.linear``, ``F.linear`` does the work.

P rows, K inputs, N outputs.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.native.int8 import Int8Map


def laid_out(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> InferenceLinear | Int8Map:
    """y = x Wᵀ + b in fp32 or bf16, or of weights in int8 by kernels, which are there."""
    if dtype == torch.int8:
        return Int8Map(weight, bias)
    return InferenceLinear(weight, bias, dtype)


def of_rows(dtype: torch.dtype) -> torch.dtype:
    """The type of rows where products are in ``dtype``: int8 kernels read and give fp32."""
    return torch.float32 if dtype == torch.int8 else dtype


class InferenceLinear:
    """y = x Wᵀ + b, or ReLU of it, in one precision: (P, K) -> (P, N)."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self.dtype = dtype
        low = weight.detach().to(dtype).contiguous()
        self._bias = None if bias is None else bias.detach().to(dtype)
        self._by_onednn = has_onednn(dtype)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(low) if self._by_onednn else low

    def __call__(self, x: Tensor, *, relu: bool = False) -> Tensor:
        if self._by_onednn:
            then = "relu" if relu else "none"
            out: Tensor = torch.ops.mkldnn._linear_pointwise.default(
                x, self._weight, self._bias, then, [], ""
            )
            return out
        out = F.linear(x, self._weight, self._bias)
        return F.relu(out) if relu else out

    def any_rows(self, x: Tensor) -> Tensor:
        """The same for x (..., K) of any type and in any number of rows: see ``rounded``."""
        rows = x.reshape(-1, x.shape[-1]).to(self.dtype)
        spare = rounded(len(rows)) - len(rows) if self._by_onednn else 0
        if not spare:
            return self(rows).view(*x.shape[:-1], -1)
        return self(F.pad(rows, (0, 0, 0, spare)))[: len(rows)].view(*x.shape[:-1], -1)


@cache
def has_onednn(dtype: torch.dtype) -> bool:
    """Whether torch's packed linear map can be had here, and is right; once a process."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        x, weight, bias = (torch.randn(shape).to(dtype) for shape in ((5, 24), (40, 24), (40,)))
        expected = F.relu(F.linear(x, weight, bias)).float()
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(weight)
            found = torch.ops.mkldnn._linear_pointwise.default(x, packed, bias, "relu", [], "")
        except (AttributeError, RuntimeError, TypeError):
            return False
        return bool((found.float() - expected).norm() < 0.01 * expected.norm())


def rounded(rows: int) -> int:
    """``rows`` or somewhat more, one of eight counts per power of two.

    For each number of rows that it meets, oneDNN compiles code, which costs as much as ten
    products and is kept.
    """
    rows = max(1, rows)
    step = 1 << max(0, (rows - 1).bit_length() - 4)
    return -(-rows // step) * step
