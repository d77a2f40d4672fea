"""The states of searches in plain models: ``CachedState`` for layers that attend to their past, and
``CarriedState`` for models whose state has a fixed size; and the keys and values of the sources
(``Source``), laid out once for all steps of a decoder.

Shapes: B sources, S longest source, R queries of a source, K and Kv widths of keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.models.interface import DecodeState, Memory
from dragoman.native import attention as native
from dragoman.nn import probes
from dragoman.nn.attention import scaled_dot_product
from dragoman.nn.cache import Cache
from dragoman.nn.layout import Layout, join
from dragoman.nn.linear import Computing, Precision


class Source(NamedTuple):
    """Keys and values of B sources, in a grid."""

    keys: Tensor
    """(B, S, K), the keys of all positions."""
    values: Tensor
    """(B, S, Kv), the values of all positions."""
    allowed: Tensor
    """(B, S) bool, True where a position may be attended to."""
    lengths: Tensor
    """(B,) int64, the length of each source."""

    @classmethod
    def of(cls, memory: Memory, keys: Tensor, values: Tensor) -> Source:
        """Lay out ``keys`` (P, K) and ``values`` (P, Kv), which were made from the rows of
        ``memory``."""
        layout = memory.layout
        allowed = layout.mask if memory.key_mask is None else layout.pad(memory.key_mask)
        lengths = torch.tensor(layout.lengths, dtype=torch.int64, device=layout.device)
        grid = layout.pad(values)
        return cls(grid if keys is values else layout.pad(keys), grid, allowed, lengths)

    def select(self, sources: Tensor | slice) -> Source:
        """Return some of the sources, (M,) by number, in that order."""
        return Source(*(part[sources] for part in self))

    @classmethod
    def join(cls, first: Source, second: Source) -> Source:
        """Return the sources of both, those of ``first`` first."""
        keys, values, allowed = map(join, first[:3], second[:3])
        return cls(keys, values, allowed, torch.cat([first.lengths, second.lengths]))


def look(query: Tensor, source: Source, scale: float) -> tuple[Tensor, Tensor]:
    """Compute attention with one head from queries (B, R, K). Return the weighted sums of values
    (B, R, Kv), and the weights (B, R, S)."""
    context, weights = scaled_dot_product(
        query[:, None],
        source.keys[:, None],
        source.values[:, None],
        source.allowed[:, None, None],
        scale=scale,
    )
    return context[:, 0], weights[:, 0]


def seen_by_probe(name: str, output: Tensor) -> Tensor:
    """Return the output of an attention's only head, or zeros if an open probe has switched the
    head off."""
    probe = probes.opened.get()
    head = None if probe is None else probe.head_mask(name, 1, output.device)
    return output if head is None else output * head.to(output.dtype)


class Looking(Computing):
    """The attention of the rows of a search over their sources, in one kernel call if possible."""

    def __init__(self) -> None:
        super().__init__()
        self.choose("fp32", by_kernels=False)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        self._in_one_pass = False

    def prepare(self, dtype: torch.dtype) -> None:
        super().prepare(dtype)
        self._in_one_pass = dtype == torch.int8 and native.look_supported()

    def __call__(
        self,
        rows: Tensor,
        queries: Layout,
        source: Source,
        *,
        scale: float,
        energy: Tensor | None = None,
        factors: Tensor | None = None,
    ) -> Tensor | None:
        """Attend from the rows (N, K) of ``queries`` as ``native.look`` does. Return None if that
        is impossible: if a probe is open, or if the model is not prepared for it."""
        if not self._in_one_pass or probes.opened.get() is not None:
            return None
        return native.look(
            rows, source.keys, source.values, source.allowed, queries.lengths,
            scale=scale, energy=energy, factors=factors,
        )  # fmt: skip


KeysAndValues = Callable[[Memory], tuple[list[tuple[Tensor, Tensor]], Tensor | None]]
"""A function that returns the keys and values of sources in each layer, and their mask, as
``Cache.admit`` takes them."""


class CachedState(DecodeState):
    """The state of a search over plain keys and values, in a ``Cache``."""

    def __init__(self, sources_of: KeysAndValues, memory: Memory) -> None:
        self._sources_of = sources_of
        self.cache = Cache(memory.rows.device)
        self.admit(memory)

    @property
    def lengths(self) -> Tensor:
        return self.cache.lengths

    def select(self, rows: Tensor) -> None:
        self.cache.select(rows)

    def admit(self, memory: Memory) -> None:
        self.cache.admit(*self._sources_of(memory))


Carried = tuple[Tensor, ...]
"""The state of N rows in L layers: tensors (L, N, ...)."""

Prepare = Callable[[Memory], tuple[Carried, Source]]
"""A function that returns the initial state, with one row for each source, and the keys and values
to attend to."""


class CarriedState(DecodeState):
    """The state of a search whose rows carry tensors of a fixed size, with the sources that they
    attend to."""

    def __init__(self, prepare: Prepare, memory: Memory) -> None:
        self._prepare = prepare
        self.carried, self.source = prepare(memory)
        self._lengths = torch.zeros(memory.layout.batch, dtype=torch.int64)
        self._counts = [1] * memory.layout.batch

    @property
    def lengths(self) -> Tensor:
        return self._lengths

    @property
    def queries(self) -> Layout:
        """The layout of rows by source: the rows of one source form one sequence."""
        return Layout(self._counts, self.source.keys.device)

    def store(self, carried: Carried) -> None:
        """Store the state after every row has read one token."""
        self.carried, self._lengths = carried, self._lengths + 1

    def select(self, rows: Tensor) -> None:
        owners = torch.arange(len(self._counts)).repeat_interleave(torch.tensor(self._counts))
        kept, counts = torch.unique_consecutive(owners[rows.cpu()], return_counts=True)
        self.carried = tuple(part[:, rows] for part in self.carried)
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
