"""Dropout whose mask is a pure function of (seed, key of the row, column), never stored.

Rows have keys, (P,) int32 numbers, so that a row has its own mask in whatever batch it is;
without a key, a row is known by its number.

Kernels drop while a result is still in registers, and their backward pass makes the mask again; it
depends on neither the number of threads nor the instruction set. What stands here computes the same
bits with torch, for their twins (``src/random.h`` says how).
An element is dropped with probability round(65536 p) / 65536, and the kept ones are scaled by
exactly 1 / (share kept).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.native import loader
from dragoman.native.pointers import SUFFIXES, address, as_rows, is_plain

_WORD = 0xFFFFFFFF


def new_seed() -> int:
    """A seed for one use of dropout, drawn from torch's default generator (so it is replayable)."""
    return int(torch.randint(2**62, (), dtype=torch.int64))


class Drop(NamedTuple):
    """One use of dropout: its mask follows from these three alone."""

    rate: float = 0.0
    """The share of elements that are set to 0; with 0 there is no dropout."""
    seed: int = 0
    row_keys: Tensor | None = None
    """(P,) int32, one for each row; None: rows are known by their numbers."""

    def for_kernel(self, rows: int) -> tuple[float, int, int | None]:
        """The arguments of a kernel that drops elements of some rows."""
        keys = self.row_keys
        if keys is not None:
            assert keys.shape == (rows,) and keys.dtype == torch.int32 and keys.is_contiguous()
        return self.rate, self.seed, address(keys)


NO_DROP = Drop()


def new_drop(rate: float, row_keys: Tensor | None) -> Drop:
    """A use of dropout with a new seed; none is drawn where the rate is 0."""
    return Drop(rate, new_seed(), row_keys) if rate else NO_DROP


def dropout(x: Tensor, drop: Drop, *, onto: Tensor | None = None) -> Tensor:
    """Dropout(x), or onto + Dropout(x): (..., D), with one name for each row of D."""
    if not (drop.rate and is_plain(x, onto) and loader.trains()) or (
        onto is not None and onto.dtype != x.dtype
    ):
        dropped = dropout_plain(x, drop)
        return dropped if onto is None else onto + dropped
    out: Tensor = _Dropout.apply(onto, x, drop)  # type: ignore[no-untyped-call]
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, onto: Tensor | None, x: Tensor, drop: Drop) -> Tensor:
        ctx.drop = drop
        return _drop(None if onto is None else onto.detach(), x.detach(), drop)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        onto = grads[0] if ctx.needs_input_grad[0] else None
        return onto, _drop(None, grads[0], ctx.drop), None


def _drop(onto: Tensor | None, x: Tensor, drop: Drop) -> Tensor:
    rows = as_rows(x).contiguous()
    out = torch.empty_like(rows)
    kernel = loader.kernel(f"dropout_{SUFFIXES[x.dtype]}")
    tensors = (None if onto is None else as_rows(onto).contiguous(), rows, out)
    kernel(*map(address, tensors), *rows.shape, *drop.for_kernel(len(rows)))
    return out.view(x.shape)


def dropout_plain(x: Tensor, drop: Drop) -> Tensor:
    """x (..., D) times 0 or 1 / (1 - rate), drawn per element."""
    if drop.rate == 0.0:
        return x
    rows = x.reshape(-1, x.shape[-1])
    keys = numbers(len(rows), x.device) if drop.row_keys is None else drop.row_keys
    return x * factors(keys, rows.shape[1], drop.rate, drop.seed, x.dtype).view_as(x)


def numbers(rows: int, device: torch.device | str = "cpu") -> Tensor:
    """(rows,) int32: the keys of rows that were given none."""
    return torch.arange(rows, dtype=torch.int32, device=device)


def factors(
    row_keys: Tensor, columns: int, rate: float, seed: int, dtype: torch.dtype = torch.float32
) -> Tensor:
    """The mask itself: (rows, columns) of 0 and 1 / (share kept) for the rows with ``row_keys``."""
    threshold = min(int(rate * 65536.0 + 0.5), 65535)
    bits = random_bits(row_keys, columns, seed)
    kept = 65536.0 / (65536 - threshold)
    return torch.where(bits >= threshold, kept, 0.0).to(dtype)


def hashed_keys(row_keys: Tensor, seed: int) -> Tensor:
    """Row keys of any integer type -> int64 numbers below 2^32 that look random."""
    low, high = seed & _WORD, (seed >> 32) & _WORD
    return _mix(_mix((row_keys.long() + low) & _WORD) ^ high)


def random_bits(row_keys: Tensor, columns: int, seed: int) -> Tensor:
    """(rows, columns) int64: the 16 random bits of each element."""
    keys = hashed_keys(row_keys, seed)  # (rows,)
    blocks = (columns + 31) // 32
    counter = torch.arange(blocks * 16, dtype=torch.int64, device=row_keys.device)
    hashed = _mix((keys[:, None] + counter) & _WORD).view(len(row_keys), blocks, 16)
    both = torch.stack([hashed & 0xFFFF, hashed >> 16], dim=2)  # (rows, blocks, 2, 16)
    return both.flatten(1)[:, :columns]


def _mix(x: Tensor) -> Tensor:
    """lowbias32 on the low 32 bits of int64 numbers."""
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _WORD
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _WORD
    return x ^ (x >> 16)
