"""A look at the sources in one pass of a kernel, against torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from native_levels import kernels_of
from torch import Tensor

from dragoman.native.attention import look, look_supported
from dragoman.nn.attention import softmax

COUNTS = [3, 0, 1, 2]
"""Rows of each source: one of them has none."""


@pytest.fixture(params=["amx", "avx512", "avx512vnni", "avxvnni", "avx2"], autouse=True)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with kernels_of(request.param):
        if not look_supported():
            pytest.skip(f"{request.param} cannot look")
        torch.manual_seed(0)
        yield request.param


def drawn(source: int, width: int, wide: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    query = torch.randn(sum(COUNTS), width)
    keys, values = torch.randn(4, source, width), torch.randn(4, source, wide)
    allowed = torch.rand(4, source) < 0.7
    allowed[0, -1] = True
    allowed[3] = False  # nothing to look at
    return query, keys, values, allowed


def expected(scores: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
    """Scores (N, S) -> what rows find (N, Kv)."""
    owners = torch.arange(4).repeat_interleave(torch.tensor(COUNTS))
    weights = softmax(scores, allowed[owners])
    return (weights[:, None] @ values[owners])[:, 0]


@pytest.mark.parametrize("sizes", [(1, 16, 16), (5, 33, 20), (40, 256, 130), (16, 7, 3)])
@pytest.mark.parametrize("additive", [False, True])
def test_a_look(sizes: tuple[int, int, int], additive: bool) -> None:
    query, keys, values, allowed = drawn(*sizes)
    owners = torch.arange(4).repeat_interleave(torch.tensor(COUNTS))
    energy, factors = torch.randn(sizes[1]), torch.tensor([2.0, 1.0, 0.5, 3.0])
    of_rows = keys[owners]  # (N, S, K)
    if additive:
        scores = torch.tanh(query[:, None] + of_rows) @ energy
        found = look(query, keys, values, allowed, COUNTS, energy=energy)
    else:
        scores = 0.3 * (of_rows @ query[:, :, None])[..., 0]
        found = look(query, keys, values, allowed, COUNTS, scale=0.3, factors=factors)
    wanted = expected(scores, values, allowed)
    wanted = wanted if additive else wanted * factors[owners][:, None]
    torch.testing.assert_close(found, wanted, atol=2e-4, rtol=2e-4)
    assert not found[-2:].any()


def test_scores_far_apart_stay_finite() -> None:
    query, keys = torch.full((6, 16), 50.0), torch.zeros(4, 3, 16)
    keys[:, 1], keys[:, 2] = 50.0, -50.0
    allowed = torch.ones(4, 3, dtype=torch.bool)
    found = look(query, keys, keys, allowed, COUNTS)
    torch.testing.assert_close(found, torch.full((6, 16), 50.0))
