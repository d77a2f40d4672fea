"""A sample of a corpus as it goes by: blocks of consecutive pairs, evenly spread and bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from dragoman.forms.form import Pair

_BLOCK = 32
"""Pairs of a block."""
_BLOCKS = 128

Block = list[Pair]
"""Consecutive pairs."""
Item = TypeVar("Item")


class BlockSampler:
    """Blocks of consecutive pairs, evenly spread over a corpus of any length, from its first on."""

    def __init__(self) -> None:
        self._kept: list[Block] = []
        self._every = 1

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Hand all pairs on, and keep some."""
        block: Block = []
        number = count = 0
        for pair in pairs:
            if number % self._every == 0:
                block.append(pair)
            count += 1
            if count == _BLOCK:
                self._keep(block)
                block, count, number = [], 0, number + 1
            yield pair
        self._keep(block)

    @property
    def blocks(self) -> list[Block]:
        """Those that were kept, in order: at most 128."""
        return spread(self._kept, _BLOCKS)

    def _keep(self, block: Block) -> None:
        if block:
            self._kept.append(block)
        if len(self._kept) >= 2 * _BLOCKS:
            self._kept = self._kept[::2]
            self._every *= 2


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many of the items, evenly spread."""
    places = np.linspace(0, len(items) - 1, min(len(items), most)).round().astype(int)
    return [items[place] for place in places.tolist()]
