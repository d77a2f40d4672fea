"""The plain cache of keys and values."""

from __future__ import annotations

import pytest
import torch

from dragoman.nn.cache import GROWTH, Cache


@pytest.mark.parametrize("width", [3, 2 * GROWTH])
def test_it_grows_with_what_is_appended(width: int) -> None:
    """Heads may be wider than the positions that it begins with."""
    cache, batch, heads = Cache(), 2, 2
    cache.admit([(torch.zeros(batch, heads, 0, width), torch.zeros(batch, heads, 0, 5))], None)
    keys = torch.randn(batch, heads, 2 * GROWTH + 3, width)
    values = torch.randn(batch, heads, 2 * GROWTH + 3, 5)
    (layer,) = cache.layers
    for place in range(keys.shape[2]):
        cache.begin(None, 1)
        part = slice(place, place + 1)
        found = layer.append(keys[:, :, part], values[:, :, part])
        cache.end(1)
    assert torch.equal(found[0], keys) and torch.equal(found[1], values)
