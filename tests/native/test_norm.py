"""Residual sums, norms, dropout and embeddings, against torch in double precision."""

from __future__ import annotations

import pytest
import torch
from native_levels import is_close, leaves, level, pull
from torch.nn import functional as F

from dragoman.native import dropout, embedding, norm
from dragoman.native.gradients import add_directly

__all__ = ["level"]

TYPES = [torch.float32, torch.bfloat16]
SHAPES = [(0, 8), (1, 2), (5, 7), (33, 64), (100, 100), (300, 33), (70, 256)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("rows", "width"), SHAPES)
@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_residual_norm(rows: int, width: int, rate: float, dtype: torch.dtype, level: str) -> None:
    torch.manual_seed(0)
    ours = leaves(torch.randn(rows, width), torch.randn(rows, width), dtype=dtype)
    ours += leaves(torch.rand(width) + 0.5, torch.randn(width))
    x, s, w, b = theirs = leaves(*ours, dtype=torch.float64)
    names = torch.randint(-(2**31), 2**31 - 1, (rows,), dtype=torch.int32)
    out = norm.residual_norm(*ours, eps=1e-5, dropout=rate, seed=99, names=names)
    mask = dropout.factors(names, width, rate, 99, torch.float64)
    wanted = F.layer_norm(x + s * mask, (width,), w, b, 1e-5)
    pull(out, wanted)
    assert out.dtype == dtype and is_close(out, wanted, dtype)
    if width > 2:  # two numbers normalise to +1 and -1: their gradients are rounding
        assert all(is_close(a.grad, c.grad, dtype) for a, c in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("dtype", TYPES)
def test_layer_norm_and_residual(dtype: torch.dtype, level: str) -> None:
    torch.manual_seed(1)
    x, s = leaves(torch.randn(2, 9, 50) * 3 + 1, torch.randn(2, 9, 50), dtype=dtype)
    w, b = leaves(torch.rand(50), torch.randn(50))
    theirs = leaves(x, s, w, b, dtype=torch.float64)
    names = torch.arange(40, 4, -2, dtype=torch.int32)
    out = norm.layer_norm(norm.residual(x, s, dropout=0.3, seed=4, names=names), w, b)
    mask = dropout.factors(names, 50, 0.3, 4, torch.float64).view(2, 9, 50)
    wanted = F.layer_norm(theirs[0] + theirs[1] * mask, (50,), *theirs[2:])
    pull(out, wanted)
    assert is_close(out, wanted, dtype)
    for ours, their in zip((x, s, w, b), theirs, strict=True):
        assert is_close(ours.grad, their.grad, dtype)


def test_a_row_of_equal_numbers_stays_finite(level: str) -> None:
    (x,) = leaves(torch.full((2, 40), 1e4))
    out = norm.layer_norm(x, torch.ones(40), torch.zeros(40))
    out.sum().backward()
    assert torch.equal(out, torch.zeros(2, 40)) and torch.isfinite(x.grad).all()


def test_evaluation_keeps_nothing(level: str) -> None:
    x = torch.randn(3, 8)
    with torch.no_grad():
        out = norm.residual_norm(x, x, torch.ones(8), torch.zeros(8), dropout=0.1, seed=1)
    assert out.grad_fn is None


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("rows", "width"), SHAPES)
def test_dropout_is_its_mask(rows: int, width: int, dtype: torch.dtype, level: str) -> None:
    (x,) = leaves(torch.randn(rows, width), dtype=dtype)
    out = dropout.dropout(x, 0.4, 2**61 + 12345)
    mask = dropout.factors(dropout.numbers(rows), width, 0.4, 2**61 + 12345, torch.float64)
    assert is_close(out, x.double() * mask, dtype)
    out.float().sum().backward()
    assert is_close(x.grad, mask, dtype)


def test_a_row_that_keeps_its_name_keeps_its_mask(level: str) -> None:
    names = torch.randint(-(2**31), 2**31 - 1, (50,), dtype=torch.int32)
    whole, order = dropout.dropout(torch.ones(50, 70), 0.4, 5, names), torch.randperm(50)[:20]
    part = dropout.dropout(torch.ones(20, 70), 0.4, 5, names[order])
    assert torch.equal(part, whole[order])
    assert torch.equal(
        dropout.dropout(torch.ones(9, 70), 0.4, 5, dropout.numbers(9)),
        dropout.dropout(torch.ones(9, 70), 0.4, 5),
    )


def test_masks_look_random() -> None:
    mask = dropout.factors(dropout.numbers(2000), 500, 0.25, 42) > 0
    # Five standard deviations of a million fair draws, and of 2,000 or 500.
    assert abs(mask.double().mean() - 0.75) < 5 * (0.1875 / 1e6) ** 0.5
    assert (mask.double().mean(0) - 0.75).abs().max() < 5 * (0.1875 / 2000) ** 0.5
    assert (mask.double().mean(1) - 0.75).abs().max() < 5 * (0.1875 / 500) ** 0.5
    centred = mask.double() - 0.75
    neighbours = (centred[:, 1:] * centred[:, :-1]).mean(), (centred[1:] * centred[:-1]).mean()
    other = dropout.factors(dropout.numbers(2000), 500, 0.25, 43) > 0
    seeds = (centred * (other.double() - 0.75)).mean()
    assert max(map(abs, (*neighbours, seeds))) < 5 * 0.1875 / 1e6**0.5


def test_the_mean_is_kept_and_rates_are_met() -> None:
    for rate in (0.0, 0.1, 0.5, 0.9):
        mask = dropout.factors(dropout.numbers(1000), 1000, rate, 1)
        assert abs(mask.mean().item() - 1) < 0.02
        assert abs((mask == 0).double().mean().item() - rate) < 0.002


def test_seeds_follow_torch() -> None:
    torch.manual_seed(9)
    first = dropout.new_seed(), dropout.new_seed()
    torch.manual_seed(9)
    assert first == (dropout.new_seed(), dropout.new_seed()) and first[0] != first[1]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("direct", [False, True])
def test_embedding(dtype: torch.dtype, direct: bool, level: str) -> None:
    torch.manual_seed(2)
    (matrix,) = leaves(torch.randn(30, 20))
    (theirs,) = leaves(matrix, dtype=torch.float64)
    places, ids, positions = torch.randn(9, 20), torch.randint(30, (200,)), torch.randint(9, (200,))
    names = torch.randint(-(2**31), 2**31 - 1, (200,), dtype=torch.int32)
    if direct:
        matrix.grad = torch.zeros(30, 20)
        add_directly([matrix])
    out = embedding.embed(
        ids, matrix, places, positions, scale=3.0, dtype=dtype, dropout=0.2, seed=4, names=names
    )
    mask = dropout.factors(names, 20, 0.2, 4, torch.float64)
    wanted = (F.embedding(ids, theirs) * 3 + places.double()[positions]) * mask
    pull(out, wanted)
    assert is_close(out, wanted, dtype) and is_close(matrix.grad, theirs.grad, dtype)


def test_an_unknown_token_is_refused(level: str) -> None:
    with pytest.raises(IndexError, match="vocabulary of 4"):
        embedding.embed(
            torch.tensor([4]), torch.zeros(4, 8), None, None, scale=1.0, dtype=torch.float32
        )
