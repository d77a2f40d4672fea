"""The rows of a search look at their sources with one head, in one pass (``src/look.cpp``).

B sources, S longest source, N rows, K and Kv widths of keys and values.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.native import loader
from dragoman.native.pointers import address


def supported() -> bool:
    """Whether this machine has the kernel."""
    return loader.function("look") is not None


def look(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    allowed: Tensor,
    counts: Sequence[int],
    *,
    scale: float = 1.0,
    energy: Tensor | None = None,
    factors: Tensor | None = None,
) -> Tensor:
    """What rows (N, K) fp32 find in keys (B, S, K) and values (B, S, Kv), where ``allowed`` (B, S):
    (N, Kv); 0 where nothing is.

    ``counts``: so many rows, in their order, are of each source. Scores are scale q · k, or
    energy · tanh(q + k) where there is an ``energy`` (K,). ``factors`` (B,) multiply what is found.
    """
    kernel = loader.kernel("look")
    query, keys, values, allowed = (
        one.contiguous() for one in (query.float(), keys.float(), values.float(), allowed)
    )
    energy = None if energy is None else energy.detach().float().contiguous()
    factors = None if factors is None else factors.float().contiguous()
    places = torch.tensor(counts, dtype=torch.int64)
    batch, source, width = keys.shape
    out = query.new_empty(len(query), values.shape[2])
    tensors = (query, keys, values, allowed, places, energy, factors, out)
    kernel(*map(address, tensors), batch, source, width, values.shape[2], scale)
    return out
