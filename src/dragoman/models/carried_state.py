"""Searches under way in plain models: of layers that attend to their past, and of models that carry
something of a size that stays."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.models.interface import DecodeState, Memory
from dragoman.models.source import Source
from dragoman.nn.cache import Cache
from dragoman.nn.layout import Layout


class CachedState(DecodeState):
    """A search over plain keys and values, whose rows keep a ``Cache``. Each model writes ``admit``
    for itself, since it alone knows what it keeps of a source."""

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


Carried = tuple[Tensor, ...]
"""What N rows carry in L layers: tensors (L, N, ...)."""

Prepare = Callable[[Memory], tuple[Carried, Source]]
"""What rows begin with, one for each source, and what they attend to."""


class CarriedState(DecodeState):
    """What rows carry, and the sources that they look at."""

    def __init__(self, prepare: Prepare, memory: Memory) -> None:
        self._prepare = prepare
        self.carried, self.source = prepare(memory)
        self._lengths = torch.zeros(memory.layout.batch, dtype=torch.int64)
        self._counts = [1] * memory.layout.batch

    @property
    def rows(self) -> int:
        return len(self._lengths)

    @property
    def lengths(self) -> Tensor:
        return self._lengths

    @property
    def queries(self) -> Layout:
        """How rows fall to the sources: those of one source stand together, as one sequence."""
        return Layout(self._counts, self.source.keys.device)

    def moved(self, carried: Carried) -> None:
        """The state after every row has taken in a token."""
        self.carried, self._lengths = carried, self._lengths + 1

    def select(self, rows: Tensor) -> None:
        owners = torch.arange(len(self._counts)).repeat_interleave(torch.tensor(self._counts))
        kept, counts = torch.unique_consecutive(owners[rows.cpu()], return_counts=True)
        self.carried = tuple(one[:, rows] for one in self.carried)
        self._lengths = self._lengths[rows.cpu()]
        if kept.tolist() != list(range(len(self._counts))):
            self.source = self.source.select(kept.to(rows.device))
        self._counts = counts.tolist()

    def admit(self, memory: Memory) -> None:
        carried, source = self._prepare(memory)
        pairs = zip(self.carried, carried, strict=True)
        self.carried = tuple(torch.cat(pair, dim=1) for pair in pairs)
        self.source = Source.join(self.source, source)
        self._lengths = F.pad(self._lengths, (0, memory.layout.batch))
        self._counts += [1] * memory.layout.batch
