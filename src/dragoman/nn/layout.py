"""Batches of sequences of different lengths, stored end to end.

The whole project keeps a batch *packed*: one row per real token, sentence after sentence, no
padding. Everything that the paper calls position-wise (projections, feed-forward, norms, the output
layer) then needs no mask at all; only attention asks where a sentence begins and ends.

Shapes: B batch, L longest sequence of the batch, P rows in all (the sum of the lengths), D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.native.dropout import numbers


class Layout:
    """The place of each of P packed rows in a (B, L) grid.

    Lengths are kept on the host, so reading a size never waits for a device; index tensors are made
    when they are first needed, and kept.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        device: torch.device | str = "cpu",
        first_row_keys: Tensor | None = None,
    ) -> None:
        """``first_row_keys`` (B,) int32: the key of the first row of each sequence, for dropout."""
        self.first_row_keys = first_row_keys
        self.lengths: tuple[int, ...] = tuple(int(n) for n in lengths)
        self.device = torch.device(device)
        self.batch = len(self.lengths)
        self.total = sum(self.lengths)
        self.longest = max(self.lengths, default=0)
        self.is_even = self.total == self.batch * self.longest
        """True if all sequences have one length, so that the grid has no empty cell."""

    @cached_property
    def offsets(self) -> Tensor:
        """(B + 1,) int32: the rows of sequence b are ``offsets[b]:offsets[b + 1]``."""
        out = torch.zeros(self.batch + 1, dtype=torch.int32)
        out[1:] = torch.tensor(self.lengths, dtype=torch.int32).cumsum(0)
        return out.to(self.device)

    @cached_property
    def sequence(self) -> Tensor:
        """(P,) int64: the number of the sequence that each row belongs to."""
        lengths = torch.tensor(self.lengths, dtype=torch.int64)
        return torch.repeat_interleave(torch.arange(self.batch), lengths).to(self.device)

    @cached_property
    def positions(self) -> Tensor:
        """(P,) int64: the place of each row in its own sequence, from 0."""
        rows = torch.arange(self.total, device=self.device)
        return rows - self.offsets[:-1].long()[self.sequence]

    @cached_property
    def row_keys(self) -> Tensor | None:
        """(P,) int32: the key of each row for dropout (``dropout.py``); None: dropout uses the
        rows' numbers."""
        if self.first_row_keys is None:
            return None
        first = self.first_row_keys.to(self.device)[self.sequence]
        return first + self.positions.to(torch.int32)  # may wrap around

    @property
    def sequence_keys(self) -> Tensor:
        """(B,) the key of each sequence for dropout, where all of its rows share a mask."""
        keys = self.first_row_keys
        return (numbers(self.batch) if keys is None else keys).to(self.device)

    @cached_property
    def cells(self) -> Tensor:
        """(P,) int64: the flat index of each row's cell in the (B, L) grid."""
        return self.sequence * self.longest + self.positions

    @cached_property
    def mask(self) -> Tensor:
        """(B, L) bool, True for cells that hold a row, False for empty cells."""
        lengths = torch.tensor(self.lengths, dtype=torch.int64, device=self.device)
        return torch.arange(self.longest, device=self.device) < lengths[:, None]

    def pad(self, rows: Tensor) -> Tensor:
        """Put packed rows into the grid: (P, ...) -> (B, L, ...), with zeros in the empty cells."""
        if self.is_even:
            return rows.view(self.batch, self.longest, *rows.shape[1:])
        grid = rows.new_zeros(self.batch * self.longest, *rows.shape[1:])
        grid = grid.index_copy(0, self.cells, rows)
        return grid.view(self.batch, self.longest, *rows.shape[1:])

    def pack(self, grid: Tensor) -> Tensor:
        """Take the rows out of the grid, the inverse of ``pad``: (B, L, ...) -> (P, ...)."""
        flat = grid.reshape(self.batch * self.longest, *grid.shape[2:])
        return flat if self.is_even else flat.index_select(0, self.cells)

    def to(self, device: torch.device | str) -> Layout:
        if torch.device(device) == self.device:
            return self
        return Layout(self.lengths, device, self.first_row_keys)


@dataclass(frozen=True)
class Sequences:
    """A batch of sequences: values, which are token ids (P,) or features (P, F), and their
    layout."""

    values: Tensor
    layout: Layout

    @classmethod
    def of(cls, sequences: Sequence[Tensor]) -> Sequences:
        """Join single sequences, each (length,) or (length, F), into one batch."""
        layout = Layout([len(s) for s in sequences], sequences[0].device)
        return cls(torch.cat(list(sequences)), layout)

    def to(self, device: torch.device | str) -> Sequences:
        if self.values.device == torch.device(device):
            return self
        return Sequences(self.values.to(device, non_blocking=True), self.layout.to(device))


def join(first: Tensor, second: Tensor, dim: int = 1) -> Tensor:
    """Stack two batches of grids. Along ``dim``, the shorter one is padded with zeros."""
    longest = max(first.shape[dim], second.shape[dim])
    inner = (0, 0) * (first.dim() - dim - 1)
    return torch.cat([F.pad(x, (*inner, 0, longest - x.shape[dim])) for x in (first, second)])
