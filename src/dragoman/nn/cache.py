"""Keys and values of past positions, so that a search never computes a prefix twice.

Rows (hypotheses) are added, dropped and reordered; every row has its own position. The keys and
values of a source are kept once, however many rows continue it, and are dropped with its last row.
This is the plain cache; fast paths have caches of their own, which copy less.

Shapes: N rows, B sources under way, T positions kept, S longest source, t new positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.nn.layout import Layout, join

GROWTH = 32
"""The number of positions by which a full cache grows: enough to copy rarely, few enough to waste
little."""


@dataclass
class LayerCache:
    """The part of a ``Cache`` that belongs to one decoder layer."""

    shared: Cache
    key: Tensor
    """(N, H, capacity, K), filled up to each row's length."""
    value: Tensor
    """(N, H, capacity, Kv), filled like ``key``."""
    source_key: Tensor
    """(B, H, S, K), the keys of each source."""
    source_value: Tensor
    """(B, H, S, Kv), the values of each source."""

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Write keys and values (N, H, t, K) after the past of each row. Return all keys
        (N, H, T, K), all values (N, H, T, Kv), and the mask (N, 1, t, T) of what may be attended
        to, or None for all."""
        shared, new = self.shared, key.shape[2]
        end = shared.longest + new
        if end > self.key.shape[2]:
            grow = end - self.key.shape[2] + GROWTH
            self.key = F.pad(self.key, (0, 0, 0, grow))
            self.value = F.pad(self.value, (0, 0, 0, grow))
        if shared.is_even:
            self.key[:, :, shared.longest : end] = key
            self.value[:, :, shared.longest : end] = value
        else:
            rows = torch.arange(shared.rows, device=key.device)[:, None]  # (N, 1)
            places = shared.places(new)  # (N, t)
            # Indexing with a slice between two index tensors puts the indexed axes first.
            self.key[rows, :, places] = key.transpose(1, 2)
            self.value[rows, :, places] = value.transpose(1, 2)
        return self.key[:, :, :end], self.value[:, :, :end], shared.mask


class Cache:
    """The state that all layers share, and the layers' own keys and values."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.lengths = torch.zeros(0, dtype=torch.int64, device=device)
        """(N,) the number of positions that each row has read."""
        self.longest = 0
        self.is_even = True
        """True if all rows are at the same position, which makes writing and masking cheap."""
        self.counts: list[int] = []
        """The number of rows that continue each source, in order; their sum is N."""
        self.layers: list[LayerCache] = []
        self.mask: Tensor | None = None
        self.source_mask: Tensor | None = None
        """(B, 1, 1, S), True where a position of the source may be attended to."""
        self._key_mask = torch.zeros(0, 0, dtype=torch.bool, device=device)
        """(N, T) True for past tokens that may be attended to. A model can exclude unknown
        tokens."""
        self._queries: dict[int, Layout] = {}

    @property
    def rows(self) -> int:
        """N, the number of rows (hypotheses)."""
        return len(self.lengths)

    def places(self, new: int) -> Tensor:
        """Return the positions (N, t) of the next ``new`` tokens of each row."""
        return self.lengths[:, None] + torch.arange(new, device=self.lengths.device)

    def queries_by_source(self, new: int) -> Layout:
        """Return the layout of N x t query rows in B sequences, one per source."""
        if new not in self._queries:
            self._queries[new] = Layout([c * new for c in self.counts], self.lengths.device)
        return self._queries[new]

    def begin(self, key_mask: Tensor | None, new: int) -> None:
        """Prepare the mask of a step, before the layers read ``new`` tokens per row.

        ``key_mask`` (N, t) bool is False for a token that no later token may attend to; None: all
        may be attended to.
        """
        end = self.longest + new
        if key_mask is not None:
            grown = F.pad(self._key_mask, (0, end - self._key_mask.shape[1]), value=True)
            self._key_mask = grown.scatter(1, self.places(new), key_mask)
        if self.is_even and new == 1 and key_mask is None:
            self.mask = None
            return
        keys = torch.arange(end, device=self.lengths.device)
        self.mask = (keys <= self.places(new)[:, :, None])[:, None]  # (N, 1, t, T)
        if key_mask is not None:
            self.mask = self.mask & self._key_mask[:, None, None, :end]

    def end(self, new: int) -> None:
        """Advance every row by ``new`` positions, after the layers."""
        self.lengths = self.lengths + new
        self.longest += new

    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (M,), in that order. The rows of one source must be adjacent."""
        owners = torch.repeat_interleave(
            torch.arange(len(self.counts)), torch.tensor(self.counts, dtype=torch.int64)
        )[rows.cpu()]
        kept, counts = torch.unique_consecutive(owners, return_counts=True)
        assert len(kept) == len(kept.unique()), "rows of one source must stand together"
        rows = rows.to(self.lengths.device)
        self.lengths = self.lengths[rows]
        self._measure()
        self._key_mask = self._key_mask.index_select(0, rows)
        same_sources = kept.tolist() == list(range(len(self.counts)))
        self.counts = counts.tolist()
        self._queries = {}
        for layer in self.layers:
            layer.key = layer.key[:, :, : self.longest + GROWTH].index_select(0, rows)
            layer.value = layer.value[:, :, : self.longest + GROWTH].index_select(0, rows)
        if not same_sources:
            kept = kept.to(self.lengths.device)
            for layer in self.layers:
                layer.source_key = layer.source_key.index_select(0, kept)
                layer.source_value = layer.source_value.index_select(0, kept)
            if self.source_mask is not None:
                self.source_mask = self.source_mask.index_select(0, kept)

    def admit(self, sources: list[tuple[Tensor, Tensor]], mask: Tensor | None) -> None:
        """Add B new sources, with one row each at position 0, after the rows under way.

        ``sources`` holds, per layer, keys (B, H, S, K) and values (B, H, S, Kv); ``mask``
        (B, 1, 1, S) is True where they may be attended to; None: everywhere.
        """
        new = len(sources[0][0])
        if not self.layers:
            for key, value in sources:
                empty = key.new_zeros(new, key.shape[1], GROWTH, key.shape[3])
                empty_value = value.new_zeros(new, value.shape[1], GROWTH, value.shape[3])
                self.layers.append(LayerCache(self, empty, empty_value, key, value))
            self.source_mask = mask
        else:
            self.source_mask = _join_masks(
                self.source_mask, self.layers[0].source_key, mask, sources[0][0]
            )
            for layer, (key, value) in zip(self.layers, sources, strict=True):
                layer.key = F.pad(layer.key, (0, 0, 0, 0, 0, 0, 0, new))
                layer.value = F.pad(layer.value, (0, 0, 0, 0, 0, 0, 0, new))
                layer.source_key = join(layer.source_key, key, 2)
                layer.source_value = join(layer.source_value, value, 2)
        self.counts = [*self.counts, *([1] * new)]
        self._queries = {}
        self.lengths = F.pad(self.lengths, (0, new))
        self._key_mask = F.pad(self._key_mask, (0, 0, 0, new), value=True)
        self._measure()

    def _measure(self) -> None:
        self.longest = int(self.lengths.max()) if self.rows else 0
        self.is_even = bool((self.lengths == self.longest).all())


def _join_masks(
    first: Tensor | None, first_keys: Tensor, second: Tensor | None, second_keys: Tensor
) -> Tensor | None:
    """Join the masks (B, 1, 1, S) of two stacked batches; None if neither batch has an empty
    cell."""
    lengths = (first_keys.shape[2], second_keys.shape[2])
    if first is None and second is None and lengths[0] == lengths[1]:
        return None
    grown = []
    for mask, keys in ((first, first_keys), (second, second_keys)):
        whole = mask
        if whole is None:
            whole = torch.ones(len(keys), 1, 1, keys.shape[2], dtype=torch.bool, device=keys.device)
        grown.append(F.pad(whole, (0, max(lengths) - keys.shape[2])))
    return torch.cat(grown)
