"""What the layers keep of past positions, in memory that is used again and again.

Shapes: T columns (positions), n slots, W numbers per position.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

GROWTH = 32
"""Columns by which a history grows beyond what is asked for."""


class History:
    """Some tables (T, n, W) of the same columns and slots, one per width in ``widths``.

    A table lies in a block of memory that is as large as it ever was. To select slots, each is
    copied into the block of the one before it, so one spare block serves all, and in a search that
    goes on no new memory is asked for: fresh pages cost as much as the products of a short search.
    Blocks begin as zeros and are never given anything but numbers, so what lies beyond the columns
    in use is finite.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        self._widths = tuple(widths)
        self._blocks = [torch.zeros(0) for _ in widths]
        self._spare = torch.zeros(0)
        self._slots = 0

    def clear(self, slots: int) -> None:
        """No columns, so many slots."""
        self._slots = slots

    def reach(self, columns: int, used: int) -> None:
        """Make room for so many columns, of which the first ``used`` hold something."""
        for i, width in enumerate(self._widths):
            row = self._slots * width
            if columns * row > len(self._blocks[i]):
                grown = torch.zeros((columns + GROWTH) * row)
                grown[: used * row] = self._blocks[i][: used * row]
                self._blocks[i] = grown

    def table(self, i: int, columns: int) -> Tensor:
        """The first columns of table ``i``: (T, n, W)."""
        shape = (columns, self._slots, self._widths[i])
        return self._blocks[i][: columns * self._slots * self._widths[i]].view(shape)

    def select(self, first: int, end: int, index: Tensor) -> None:
        """Keep columns ``first`` to ``end`` of slots ``index`` (n,), in that order."""
        count, slots = end - first, len(index)
        for i, width in enumerate(self._widths):
            size = count * slots * width
            if size > len(self._spare):
                self._spare = torch.zeros(size + GROWTH * slots * width)
            kept = self.table(i, end)[first:]
            out = self._spare[:size].view(count, slots, width)
            torch.index_select(kept, 1, index, out=out)
            self._blocks[i], self._spare = self._spare, self._blocks[i]
        self._slots = slots
