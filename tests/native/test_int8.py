"""Linear maps in int8 and what stands behind them, against the same by torch."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from native_levels import cosine, kernels_of
from torch import Tensor
from torch.nn import functional as F

from dragoman.native.int8 import Int8Map, is_supported
from dragoman.native.lstm import cell_plain

LEVELS = ["amx", "amxtwin", "avx512", "avx512vnni", "avxvnni", "avx2"]
SIZES = [(1, 64, 16), (5, 33, 20), (20, 256, 48), (101, 70, 130)]
"""Rows, inputs, outputs: few and many rows, whole panels and parts of them."""


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with kernels_of(request.param):
        if not is_supported():
            pytest.skip(f"{request.param} has no int8 products")
        torch.manual_seed(0)
        yield request.param


def drawn(rows: int, inputs: int, outputs: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows that lie within wider ones, weights, biases."""
    x = torch.randn(rows, inputs + 3)[:, :inputs]
    return x, torch.randn(outputs, inputs) / math.sqrt(inputs), torch.randn(outputs)


def near(ours: Tensor, theirs: Tensor) -> bool:
    """Within what seven bits round."""
    return ours.shape == theirs.shape and cosine(ours, theirs) > 0.9995


@pytest.mark.parametrize("size", SIZES)
def test_rows(level: str, size: tuple[int, int, int]) -> None:
    x, weight, bias = drawn(*size)
    made = Int8Map(weight, bias)
    wanted = F.linear(x, weight, bias)
    assert near(made.any_rows(x), wanted)
    assert near(made.any_rows(x[None].double()), wanted[None])
    wide = torch.ones(len(x), size[2] + 5)
    made.rows(x, wide[:, 2 : 2 + size[2]], more=True)
    assert near(wide[:, 2 : 2 + size[2]] - 1, wanted)
    assert bool((wide[:, :2] == 1).all() and (wide[:, 2 + size[2] :] == 1).all())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k", [1, 5, 16])
@pytest.mark.parametrize("biased", [False, True])
def test_the_best(level: str, size: tuple[int, int, int], k: int, biased: bool) -> None:
    x, weight, bias = drawn(*size)
    bias[-1] = -1e9  # what is never to be chosen has such a one
    made = Int8Map(4 * weight, 3 * bias if biased else None)
    expected, places = made.any_rows(x).log_softmax(dim=-1).topk(k)
    found, ids = made.best(x, k)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert torch.equal(ids, places)


@pytest.mark.parametrize("size", SIZES)
def test_a_gated_linear_unit(level: str, size: tuple[int, int, int]) -> None:
    x, weight, bias = drawn(*size)
    _, gate, gate_bias = drawn(*size)
    joint, biases = torch.cat([weight, gate]), torch.cat([bias, gate_bias])
    assert near(Int8Map(joint, biases, groups=2).gate(x), F.glu(F.linear(x, joint, biases)))


@pytest.mark.parametrize("size", SIZES)
def test_a_step_of_an_lstm(level: str, size: tuple[int, int, int]) -> None:
    rows, inputs, width = size
    x, weight, bias = drawn(rows, inputs, 4 * width)
    again = torch.randn(4 * width, width) / math.sqrt(width)
    hidden, cells = torch.randn(rows, width).tanh(), 3 * torch.randn(rows, width)
    read, by_hidden = Int8Map(weight, bias, groups=4), Int8Map(again, None, groups=4)
    before = cells.clone()
    out, kept = by_hidden.lstm(read.any_rows(x), hidden, cells)
    wanted = cell_plain(F.linear(x, weight), F.linear(hidden, again), bias, cells)
    assert near(out, wanted[0]) and near(kept, wanted[1])
    assert torch.equal(cells, before)


def test_gates_far_from_zero_are_open_or_shut(level: str) -> None:
    """Of what no exponential of fp32 holds."""
    weight = torch.zeros(64, 16)
    bias = torch.tensor([500.0, -500.0, -400.0, 300.0]).repeat_interleave(16)
    read, again = Int8Map(weight, bias, groups=4), Int8Map(weight, None, groups=4)
    zero = torch.zeros(1, 16)
    out, cells = again.lstm(read.any_rows(zero), zero, zero + 7)
    torch.testing.assert_close(cells, zero - 1)
    torch.testing.assert_close(out, (zero - 1).tanh())


def test_all_steps_are_one_step_each(level: str) -> None:
    """Sequences of 4, 2 and 2 steps, whose rows stand one sequence after the other."""
    width = 20
    weight = torch.randn(4 * width, width) / math.sqrt(width)
    again, read = Int8Map(weight, None, groups=4), Int8Map(weight, None, groups=4)
    gates = read.any_rows(torch.randn(8, width))
    places, sizes = torch.tensor([0, 4, 6, 1, 5, 7, 2, 3]), [3, 3, 1, 1]
    begin = torch.randn(3, width).tanh(), torch.randn(3, width)
    out = torch.zeros(8, width + 4)
    cells = again.recur(gates, places, sizes, begin, out[:, 1 : 1 + width])
    hidden, cell = begin
    for count, rows in zip(sizes, places.split(sizes), strict=True):
        hidden, cell = again.lstm(gates[rows], hidden[:count], cell[:count])
        assert torch.equal(out[rows, 1 : 1 + width], hidden)
        assert torch.equal(cells[rows], cell)
    assert not out[:, 0].any() and not out[:, 1 + width :].any()
