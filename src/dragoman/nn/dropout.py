"""Dropout (paper §5.4) with masks that follow from rows, and are cheap to draw on a CPU.

Each row has a key, made of its example and its place in the example (``Layout.row_keys``). Inside
``with drawing(seed)``, the masks of a row follow from the seed and its key alone, so the row gets
the same masks in any micro-batch and process. The native kernels compute masks from these two
numbers (``native/dropout.py``), and this module calls them with ``by_kernels``. In plain torch,
drawing random numbers would cost as much as the layer itself, so each row's mask is cut out of one
pool of random bytes, at a place that follows from the key. Two masks may overlap in part; no
element gets the same place twice in a row.

Outside of ``drawing``, torch's own dropout is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.native import dropout as native

POOL_ELEMENTS = 1 << 22
"""The number of elements of a pool: more than the masks of a usual layer need, few enough to stay
in cache."""

_SPREAD = 0x9E3779B1
"""The factor that gives neighbouring keys distant places (Knuth, volume 3, section 6.4)."""


class _Pool:
    """A pool of random values in 0..255, one byte each, from which masks for any rate are cut."""

    def __init__(self, seed: int, by_kernels: bool) -> None:
        """``by_kernels``: the masks of rows are made by kernels, not cut out of the pool. The pool
        is drawn only when the first mask is cut."""
        self.by_kernels = by_kernels
        self._seed = seed
        self._masks: dict[tuple[float, torch.dtype, torch.device], Tensor] = {}

    def factors(
        self, row_keys: Tensor, columns: int, rate: float, use: int, dtype: torch.dtype
    ) -> Tensor:
        """Return factors (..., columns), each 0 or 1 / (1 - rate), that follow from ``row_keys``
        (...). The rate is met to within 1 / 256. ``use`` distinguishes the uses of dropout."""
        key = (rate, dtype, row_keys.device)
        whole = self._masks.get(key)
        if whole is None or len(whole) < POOL_ELEMENTS + columns:
            threshold = round(rate * 256)
            keep = (self._values().to(row_keys.device) >= threshold).to(dtype)
            keep = keep.mul_(256 / (256 - threshold))
            # Its beginning once more at its end, so that a mask may start anywhere.
            again = 1 + (columns + 4095) // POOL_ELEMENTS
            whole = torch.cat([keep] * again + [keep[: (columns + 4095) % POOL_ELEMENTS]])
            self._masks[key] = whole
        starts = (row_keys.long() * _SPREAD + use).remainder(POOL_ELEMENTS)
        windows = whole.as_strided((POOL_ELEMENTS, columns), (1, 1))
        return windows.index_select(0, starts.flatten()).view(*row_keys.shape, columns)

    def _values(self) -> Tensor:
        generator = torch.Generator().manual_seed(self._seed)
        words = torch.randint(-(2**63), 2**63 - 1, (POOL_ELEMENTS // 8,), generator=generator)
        return words.view(torch.uint8)


@lru_cache(maxsize=1)
def _pool(seed: int, by_kernels: bool) -> _Pool:
    """Return the pool for ``seed``. All micro-batches of an update share one pool."""
    return _Pool(seed, by_kernels)


_open: ContextVar[_Pool | None] = ContextVar("dropout_pool", default=None)


@contextmanager
def drawing(seed: int, *, by_kernels: bool = False) -> Iterator[None]:
    """Make every dropout mask inside the context follow from ``seed``, the order of uses, and row
    keys."""
    # new_seed() asks the CPU's generator for each use. torch.manual_seed seeds those of devices
    # too, and for each kind that is not in use notes the stack: 0.3 ms of an update.
    on_gpu = torch.cuda.is_initialized()
    (torch.manual_seed if on_gpu else torch.default_generator.manual_seed)(seed)
    token = _open.set(_pool(seed, by_kernels))
    try:
        yield
    finally:
        _open.reset(token)


def attention_factors(
    row_keys: Tensor, heads: int, keys: int, rate: float, dtype: torch.dtype
) -> Tensor | None:
    """Return the dropout factors (B, H, T, S) for attention weights, from the keys (B, T) of the
    query rows; None outside of ``drawing``, where torch draws the masks. ``keys``: S."""
    pool = _open.get()
    if pool is None:
        return None
    own = row_keys[:, None].long() * heads + torch.arange(heads, device=row_keys.device)[:, None]
    return pool.factors(own, keys, rate, native.new_seed(), dtype)


class Dropout(nn.Module):
    """A dropout layer with a fixed rate, which is active only in training."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    @property
    def rate_now(self) -> float:
        """The rate in training, else 0."""
        return self.rate if self.training else 0.0

    def forward(
        self, x: Tensor, row_keys: Tensor | None = None, *, onto: Tensor | None = None
    ) -> Tensor:
        """Set elements of x (..., D) to 0 at the rate, scale the other elements by 1 / (1 - rate),
        and add the result to ``onto`` (..., D) if that is given.

        ``row_keys`` (...) int32: the keys of the rows; None: their numbers.
        """
        pool, rate = _open.get(), self.rate
        if self.training and rate:
            if pool is None:
                x = F.dropout(x, rate)
            elif pool.by_kernels:
                rows = None if row_keys is None else row_keys.flatten()
                return native.dropout(x, native.new_drop(rate, rows), onto=onto)
            else:
                if row_keys is None:
                    row_keys = native.numbers(x[..., 0].numel(), x.device).view(x.shape[:-1])
                x = x * pool.factors(row_keys, x.shape[-1], rate, native.new_seed(), x.dtype)
        return x if onto is None else onto + x
