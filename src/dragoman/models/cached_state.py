"""A search under way over plain keys and values, for models whose layers attend to their past."""

from __future__ import annotations

from torch import Tensor

from dragoman.models.interface import DecodeState, Memory
from dragoman.nn.cache import Cache


class CachedState(DecodeState):
    """A search whose rows keep a ``Cache``. Each model writes ``admit`` for itself, since it alone
    knows what it keeps of a source."""

    def __init__(self, memory: Memory) -> None:
        self.cache = Cache(memory.rows.device)
        self.admit(memory)

    @property
    def rows(self) -> int:
        return self.cache.rows

    @property
    def lengths(self) -> Tensor:
        return self.cache.lengths

    def select(self, rows: Tensor) -> None:
        self.cache.select(rows)
