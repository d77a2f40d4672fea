"""Dropout outside of kernels: masks from one pool of random bits for each update, or from names."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dragoman.native import dropout as native
from dragoman.nn import dropout


def test_masks_of_an_update_end_with_it() -> None:
    """Outside of ``drawing`` dropout follows torch's seed alone, whatever was drawn before."""
    rows, row_keys = torch.ones(4, 8), torch.arange(4, dtype=torch.int32)

    def outside() -> Tensor:
        torch.manual_seed(3)
        return dropout.Dropout(0.5)(rows, row_keys)

    before = outside()
    with dropout.drawing(1):
        assert not torch.equal(dropout.Dropout(0.5)(rows, row_keys), before)
    assert torch.equal(outside(), before)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_pool_drops_at_the_rate_and_keeps_the_mean(rate: float) -> None:
    row_keys = torch.arange(2000, dtype=torch.int32)
    with dropout.drawing(5):
        found = dropout.Dropout(rate)(torch.ones(2000, 100), row_keys)
    assert float((found == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert float(found.mean()) == pytest.approx(1, abs=0.02)
    # Neither rows nor columns are dropped together.
    assert float((found == 0).float().mean(dim=0).std()) < 0.03
    assert float((found == 0).float().mean(dim=1).std()) < 0.08


@pytest.mark.parametrize("by_kernels", [False, True])
def test_a_mask_follows_a_row_s_name(by_kernels: bool) -> None:
    rows, row_keys = torch.randn(40, 70), torch.randperm(40).int() - 20

    def dropped(which: Tensor, seed: int = 3) -> Tensor:
        with dropout.drawing(seed, by_kernels=by_kernels):
            return dropout.Dropout(0.4)(rows[which], row_keys[which], onto=rows[which])

    whole, some = dropped(torch.arange(40)), torch.tensor([7, 3, 31])
    assert torch.equal(dropped(some), whole[some])
    assert not torch.equal(dropped(some, 4), whole[some])
    # Rows as they are, twice or scaled and added.
    added = (whole - rows) / rows
    assert ((added.abs() < 1e-3) | ((added * 0.6 - 1).abs() < 0.01)).all()


def test_masks_of_kernels_are_not_those_of_the_pool() -> None:
    """And they are the twin's, to the bit."""
    row_keys = torch.arange(9, dtype=torch.int32).view(3, 3)
    with dropout.drawing(8):
        pooled = dropout.Dropout(0.5)(torch.ones(3, 3, 64), row_keys)
    with dropout.drawing(8, by_kernels=True):
        found = dropout.Dropout(0.5)(torch.ones(3, 3, 64), row_keys)
    torch.manual_seed(8)
    twin = native.factors(row_keys.flatten(), 64, 0.5, native.new_seed())
    assert torch.equal(found, twin.view(3, 3, 64)) and not torch.equal(found, pooled)


def test_devices_in_use_are_seeded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    with dropout.drawing(8):
        first = native.new_seed()
    assert not seeds, "there is none"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with dropout.drawing(8):
        assert native.new_seed() == first and seeds == [8]
