"""Finite scalar quantisation: every code is reached, and gradients pass through the rounding."""

from __future__ import annotations

import pytest
import torch

from dragoman.models.picture_codes import FiniteScalars


@pytest.mark.parametrize("levels", [(8, 6, 5), (2,), (3, 4)])
def test_codes_and_levels_are_each_others_inverse(levels: tuple[int, ...]) -> None:
    scalars = FiniteScalars(levels)
    codes = torch.arange(scalars.count)
    found = scalars.levels_of(codes)
    assert torch.equal(scalars.codes(found), codes)
    assert len({tuple(row.tolist()) for row in found}) == scalars.count
    assert scalars.scale(found).abs().max() <= 1
    for column, level in zip(found.T, levels, strict=True):
        assert sorted(set(column.tolist())) == [n - level // 2 for n in range(level)]


def test_every_code_is_reached_and_no_other() -> None:
    scalars = FiniteScalars((8, 6, 5))
    generator = torch.Generator().manual_seed(1)
    far = 1.5 * torch.randn(20_000, 3, generator=generator)
    far[0], far[1] = 1e4, -1e4
    codes = scalars.codes(scalars.quantise(far))
    assert codes.unique().tolist() == list(range(240))
    assert codes[0] == 239 and codes[1] == 0
    assert scalars.limit(torch.zeros(1, 3)).abs().max() < 1e-6


def test_gradients_pass_as_if_nothing_were_rounded() -> None:
    """By hand: d/dz of tanh(z + s) h - o is (1 - tanh²(z + s)) h."""
    scalars = FiniteScalars((4, 3))
    z = torch.tensor([[0.3, -0.7]], dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([[2.0, 5.0]], dtype=torch.float64)
    quantised = scalars.quantise(z)
    assert torch.equal(quantised, quantised.round())
    (quantised * weights).sum().backward()  # type: ignore[no-untyped-call]
    half = torch.tensor([3 * 0.999 / 2, 2 * 0.999 / 2], dtype=torch.float64)
    shift = torch.atanh(torch.tensor([0.5, 0.0], dtype=torch.float64) / half)
    wanted = weights * (1 - torch.tanh(z.detach() + shift) ** 2) * half
    assert z.grad is not None and torch.allclose(z.grad, wanted)
