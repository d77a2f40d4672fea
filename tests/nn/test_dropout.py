"""Dropout on plain torch: masks from one pool of random bits for each update."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dragoman.nn import dropout


def test_masks_of_an_update_end_with_it() -> None:
    """Outside of ``drawing`` dropout follows torch's seed alone, whatever was drawn before."""
    rows, names = torch.ones(4, 8), torch.arange(4, dtype=torch.int32)

    def outside() -> Tensor:
        torch.manual_seed(3)
        return dropout.dropout(rows, 0.5, True, names)

    before = outside()
    with dropout.drawing(1):
        assert not torch.equal(dropout.dropout(rows, 0.5, True, names), before)
    assert torch.equal(outside(), before)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_pool_drops_at_the_rate_and_keeps_the_mean(rate: float) -> None:
    names = torch.arange(2000, dtype=torch.int32)
    with dropout.drawing(5):
        found = dropout.dropout(torch.ones(2000, 100), rate, True, names)
    assert float((found == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert float(found.mean()) == pytest.approx(1, abs=0.02)
    # Neither rows nor columns are dropped together.
    assert float((found == 0).float().mean(dim=0).std()) < 0.03
    assert float((found == 0).float().mean(dim=1).std()) < 0.08
