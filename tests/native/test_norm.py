"""Norms of sums, dropout and embeddings, against torch in double precision."""

from __future__ import annotations

import pytest
import torch
from native_levels import is_close, leaves, level, pull
from torch import Tensor
from torch.nn import functional as F

from dragoman.native import dropout, embedding, norm
from dragoman.native.dropout import Drop
from dragoman.native.pointers import add_directly

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
    row_keys = torch.randint(-(2**31), 2**31 - 1, (rows,), dtype=torch.int32)
    seed = 2**61 + 12345  # both of its halves count
    row, added, gain, bias = ours
    drop = Drop(rate, seed, row_keys)
    out = norm.layer_norm(row, gain, bias, added=added, eps=1e-5, drop=drop)
    mask = dropout.factors(row_keys, width, rate, seed, torch.float64)
    wanted = F.layer_norm(x + s * mask, (width,), w, b, 1e-5)
    pull(out, wanted)
    assert out.dtype == dtype and is_close(out, wanted, dtype)
    if width > 2:  # two numbers normalise to +1 and -1: their gradients are rounding
        assert all(is_close(a.grad, c.grad, dtype) for a, c in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("rows", "width"), SHAPES)
@pytest.mark.parametrize("alone", [False, True])
def test_dropout(rows: int, width: int, alone: bool, dtype: torch.dtype, level: str) -> None:
    torch.manual_seed(3)
    x, onto = leaves(torch.randn(rows, width), torch.randn(rows, width), dtype=dtype)
    theirs = leaves(x, onto, dtype=torch.float64)
    row_keys = torch.randint(-(2**31), 2**31 - 1, (rows,), dtype=torch.int32)
    seed = 2**61 + 12345
    out = dropout.dropout(x, Drop(0.3, seed, row_keys), onto=None if alone else onto)
    wanted = theirs[0] * dropout.factors(row_keys, width, 0.3, seed, torch.float64)
    if not alone:
        wanted = theirs[1] + wanted
    pull(out, wanted)
    assert out.dtype == dtype and is_close(out, wanted, dtype)
    for ours, their in zip((x,) if alone else (x, onto), theirs, strict=False):
        assert is_close(ours.grad, their.grad, dtype)


def test_dropout_of_several_rows_of_a_name(level: str) -> None:
    """A mask for each name, the same at every step (models/decoder.py)."""
    row_keys = torch.tensor([7, -1, 7], dtype=torch.int32)
    (x,) = leaves(torch.ones(3, 70))
    out = dropout.dropout(x, Drop(0.5, 3, row_keys))
    assert torch.equal(out[0], out[2]) and not torch.equal(out[0], out[1])
    assert torch.equal(dropout.dropout(x.view(1, 3, 70), Drop(0.5, 3, row_keys))[0], out)
    assert torch.equal(dropout.dropout(x, Drop(0.0, 3, row_keys)), x)


@pytest.mark.parametrize("dtype", TYPES)
def test_layer_norm(dtype: torch.dtype, level: str) -> None:
    torch.manual_seed(1)
    (x,) = leaves(torch.randn(2, 9, 50) * 3 + 1, dtype=dtype)
    w, b = leaves(torch.rand(50), torch.randn(50))
    theirs = leaves(x, w, b, dtype=torch.float64)
    out = norm.layer_norm(x, w, b)
    wanted = F.layer_norm(theirs[0], (50,), *theirs[1:])
    pull(out, wanted)
    assert is_close(out, wanted, dtype)
    for ours, their in zip((x, w, b), theirs, strict=True):
        assert is_close(ours.grad, their.grad, dtype)


def test_a_row_of_equal_numbers_stays_finite(level: str) -> None:
    (x,) = leaves(torch.full((2, 40), 1e4))
    out = norm.layer_norm(x, torch.ones(40), torch.zeros(40))
    out.sum().backward()
    assert torch.equal(out, torch.zeros(2, 40)) and torch.isfinite(x.grad).all()


def test_evaluation_keeps_nothing(level: str) -> None:
    x = torch.randn(3, 8)
    with torch.no_grad():
        out = norm.layer_norm(x, torch.ones(8), torch.zeros(8), added=x, drop=Drop(0.1, 1))
    assert out.grad_fn is None


def dropped_and_normalised(rows: int, row_keys: Tensor | None) -> Tensor:
    x, ones = torch.zeros(rows, 70), torch.ones(rows, 70)
    gain, bias = torch.ones(70), torch.zeros(70)
    return norm.layer_norm(x, gain, bias, added=ones, drop=Drop(0.4, 5, row_keys))


def test_a_row_that_keeps_its_name_keeps_its_mask(level: str) -> None:
    row_keys = torch.randint(-(2**31), 2**31 - 1, (50,), dtype=torch.int32)
    whole, order = dropped_and_normalised(50, row_keys), torch.randperm(50)[:20]
    part = dropped_and_normalised(20, row_keys[order])
    assert torch.equal(part, whole[order])
    assert not torch.equal(part, whole[:20])
    assert torch.equal(
        dropped_and_normalised(9, dropout.numbers(9)), dropped_and_normalised(9, None)
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
    row_keys = torch.randint(-(2**31), 2**31 - 1, (200,), dtype=torch.int32)
    if direct:
        matrix.grad = torch.zeros(30, 20)
        add_directly([matrix])
    out = embedding.embed(
        ids,
        matrix,
        places,
        positions,
        scale=3.0,
        dtype=dtype,
        drop=Drop(0.2, 4, row_keys),
    )
    mask = dropout.factors(row_keys, 20, 0.2, 4, torch.float64)
    wanted = (F.embedding(ids, theirs) * 3 + places.double()[positions]) * mask
    pull(out, wanted)
    assert is_close(out, wanted, dtype) and is_close(matrix.grad, theirs.grad, dtype)


def test_an_unknown_token_is_refused(level: str) -> None:
    with pytest.raises(IndexError, match="vocabulary of 4"):
        embedding.embed(
            torch.tensor([4]), torch.zeros(4, 8), None, None, scale=1.0, dtype=torch.float32
        )
