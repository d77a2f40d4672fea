"""Dropout (paper §5.4), with masks that are cheap to draw on a CPU.

Drawing a random number for every element costs a CPU about as much as the layer itself. Inside
``with pool(seed)`` the masks of one pass are cut, at random places, from one pool of random bits
drawn at its start. Two masks may overlap in part; no element sees the same place twice in a row.
Outside of a pool, and on a GPU, this is torch's own dropout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional as F

POOL_ELEMENTS = 1 << 22
"""Elements of a pool: larger than any one mask of a usual update, small enough to stay in cache."""


class _Pool:
    """Random values in 0..255, one byte each, from which masks for any rate are cut."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self._masks: dict[tuple[float, torch.dtype], Tensor] = {}

    @cached_property
    def values(self) -> Tensor:
        """Drawn when first asked for: native kernels need no pool."""
        words = torch.randint(-(2**62), 2**62, (POOL_ELEMENTS // 8,), generator=self.generator)
        return words.view(torch.uint8)

    def mask(self, shape: torch.Size, rate: float, dtype: torch.dtype) -> Tensor:
        """A mask of 0 and 1 / (1 - rate); the rate is met to within 1 / 256."""
        key = (rate, dtype)
        if key not in self._masks:
            threshold = round(rate * 256)
            keep = (self.values >= threshold).to(dtype)
            self._masks[key] = keep.mul_(256 / (256 - threshold))
        whole = self._masks[key]
        elements = shape.numel()
        if elements >= len(whole):
            whole = whole.repeat(2 + elements // len(whole))
        span = len(whole) - elements
        start = int(torch.randint(span, (1,), generator=self.generator))
        return whole[start : start + elements].view(shape)


_open: ContextVar[_Pool | None] = ContextVar("dropout_pool", default=None)


@contextmanager
def pool(seed: int) -> Iterator[None]:
    """Cut the masks of everything inside from one pool, drawn by ``seed`` alone."""
    token = _open.set(_Pool(seed))
    try:
        yield
    finally:
        _open.reset(token)


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """x with elements set to 0 at ``rate`` and the others scaled by 1 / (1 - rate)."""
    if not training or rate == 0.0:
        return x
    source = _open.get()
    if source is None or x.device.type != "cpu":
        return F.dropout(x, rate)
    return x * source.mask(x.shape, rate, x.dtype)


class Dropout(nn.Module):
    """``dropout`` as a module, which knows whether it is training."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate, self.training)
