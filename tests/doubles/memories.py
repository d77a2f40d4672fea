"""Parts of what a model has read."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.models.interface import Memory
from dragoman.nn.layout import Layout


def some_sources(memory: Memory, sources: Sequence[int]) -> Memory:
    """The memory of some of its sources, in that order."""
    lengths = memory.layout.lengths

    def part_of(rows: Tensor) -> Tensor:
        parts = rows.split(list(lengths))
        return torch.cat([parts[source] for source in sources])

    return Memory(
        part_of(memory.rows),
        Layout([lengths[source] for source in sources]),
        tokens=None if memory.tokens is None else part_of(memory.tokens),
    )
