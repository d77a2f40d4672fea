"""A sample of a corpus that is taken while it is read: evenly spread blocks of consecutive
pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from dragoman.forms.form import Pair

_BLOCK = 32
"""The number of pairs in a block."""
_BLOCKS = 128

Block = list[Pair]
Item = TypeVar("Item")


class BlockSampler:
    """This class samples blocks of consecutive pairs, evenly spread over a corpus of any length."""

    def __init__(self) -> None:
        self._kept: list[Block] = []
        self._every = 1

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield all pairs, and keep some of them."""
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
        """The sampled blocks in order, at most 128."""
        return spread(self._kept, _BLOCKS)

    def _keep(self, block: Block) -> None:
        if block:
            self._kept.append(block)
        if len(self._kept) >= 2 * _BLOCKS:
            self._kept = self._kept[::2]
            self._every *= 2


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most ``most`` of the items, evenly spread."""
    places = np.linspace(0, len(items) - 1, min(len(items), most)).round().astype(int)
    return [items[place] for place in places.tolist()]
