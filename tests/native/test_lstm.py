"""A step of an LSTM and additive attention, against torch in double precision."""

from __future__ import annotations

import pytest
import torch
from native_levels import is_close, leaves, level, pull
from torch import Tensor

from dragoman.native import additive, lstm

__all__ = ["level"]

TYPES = [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("rows", "width"), [(0, 8), (1, 1), (5, 7), (16, 16), (33, 50), (70, 256)])
def test_a_step(rows: int, width: int, dtype: torch.dtype, level: str) -> None:
    torch.manual_seed(0)
    gates = 3 * torch.randn(rows, 8 * width)[:, 4 * width :]  # beside those of another direction
    low = leaves(gates, torch.randn(rows, 4 * width), dtype=dtype)
    ours = [*low, *leaves(torch.randn(4 * width), torch.randn(rows, width))]
    theirs = leaves(*ours, dtype=torch.float64)
    hidden, cells = lstm.cell(*ours)
    assert hidden.dtype == dtype and cells.dtype == torch.float32
    x, h, b, c = theirs
    i, f, g, o = (x + h + b).chunk(4, dim=1)
    now = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    wanted = torch.sigmoid(o) * torch.tanh(now)
    assert is_close(hidden, wanted, dtype) and is_close(cells, now, torch.float32)
    pull(torch.cat([hidden.float(), cells], dim=1), torch.cat([wanted, now], dim=1))
    assert all(is_close(a.grad, e.grad, dtype) for a, e in zip(ours, theirs, strict=True))


def test_gates_far_from_zero_are_shut_or_open(level: str) -> None:
    far = torch.tensor([[-1e4, 1e4, -1e4, 1e4]])
    hidden, cells = lstm.cell(far, torch.zeros(1, 4), torch.zeros(4), torch.full((1, 1), 40.0))
    assert cells.item() == 40.0 and hidden.item() == 1.0


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 4, 5, 7), (2, 9, 1, 16), (4, 3, 8, 100)])
def test_additive_scores(sizes: tuple[int, int, int, int], dtype: torch.dtype, level: str) -> None:
    torch.manual_seed(0)
    batch, queries, source, width = sizes
    low = leaves(torch.randn(batch, queries, width), torch.randn(batch, source, width), dtype=dtype)
    energy = torch.randn(width).to(dtype).float()
    ours = [*low, *leaves(energy)]
    theirs = leaves(*ours, dtype=torch.float64)
    allowed = torch.rand(batch, source) < 0.7
    q, k, v = theirs
    wanted = torch.tanh(q[:, :, None] + k[:, None]) @ v

    def seen(scores: Tensor) -> Tensor:
        return scores.masked_fill(~allowed[:, None], 0)

    scores = additive.additive_scores(*ours, allowed)
    assert scores.dtype == dtype and torch.equal(scores, seen(scores))
    assert is_close(scores, seen(wanted), dtype)
    pull(scores, seen(wanted))
    assert all(is_close(a.grad, e.grad, dtype) for a, e in zip(ours, theirs, strict=True))
