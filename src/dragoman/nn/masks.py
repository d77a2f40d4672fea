"""All masks of attention, built in one place. Boolean; True = may attend.

Masks are made for the padded grid, the only place where a cell may be empty, and broadcast over
heads: (B or 1, 1, T or 1, S). B batch, T queries, S keys.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.nn.layout import Layout


def padding(keys: Layout) -> Tensor | None:
    """(B, 1, 1, S): no query attends to an empty cell. None where there is no empty cell."""
    return None if keys.is_even else keys.mask[:, None, None, :]


def causal(queries: int, keys: int, device: torch.device | str = "cpu") -> Tensor:
    """(1, 1, T, S): the query at position t attends to keys 0..t (paper §3.2.3).

    The last query stands at the last key, so T < S is the case of a prefix already taken in.
    """
    past = keys - queries
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(past)[None, None]


def of_keys(key_mask: Tensor | None, keys: Layout) -> Tensor | None:
    """(P,) bool per key row -> (B, 1, 1, S): keys that are switched off, such as unknown tokens."""
    return None if key_mask is None else keys.pad(key_mask)[:, None, None, :]


def both(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """A key must be allowed by both; None allows everything."""
    if first is None:
        return second
    return first if second is None else first & second
