"""Masked texts -> the packed tensors of one micro-batch.

A text is read as the source of a translation is: its tokens, EOS behind. A longer one than a model
reads at once comes in pieces, each with EOS behind.

Shapes: B pieces, P packed rows, M tokens that are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import first_row_keys_of, make_sources, rows_of
from dragoman.data.masking import Masked
from dragoman.data.store import Tokens
from dragoman.nn.layout import Sequences


@dataclass(frozen=True)
class MaskedBatch:
    """One micro-batch of masked pieces (``training/losses/objectives.py``)."""

    source: Sequences
    """(P,) int64 ids, some hidden, each piece with EOS at its end."""
    places: Tensor
    """(M,) int64: the rows of ``source`` that are asked for."""
    wanted: Tensor
    """(M,) int64: the tokens that stand there."""
    ids: tuple[int, ...]
    """Which example each piece is."""

    def __len__(self) -> int:
        """B, the number of examples."""
        return self.source.layout.batch

    def to(self, device: torch.device | str) -> MaskedBatch:
        """The same batch on another device."""
        return MaskedBatch(
            self.source.to(device),
            self.places.to(device, non_blocking=True),
            self.wanted.to(device, non_blocking=True),
            self.ids,
        )

    def split(self) -> tuple[MaskedBatch, MaskedBatch]:
        """Two batches with about half of the tokens each, in the same order.

        For a batch that did not fit into memory. Raises ValueError if there is but one piece.
        """
        if len(self) < 2:
            raise ValueError("a batch of one example cannot be split")
        ends = np.array(self.source.layout.lengths).cumsum()
        half = int(np.searchsorted(ends, ends[-1] / 2)) + 1
        cut = min(max(half, 1), len(self) - 1)
        return self._part(0, cut), self._part(cut, len(self))

    def summary(self) -> str:
        """How large it is."""
        layout = self.source.layout
        return (
            f"{len(self)} examples, {layout.total} tokens, {len(self.wanted)} of them masked, the "
            f"longest {layout.longest}"
        )

    def _part(self, first: int, last: int) -> MaskedBatch:
        source = rows_of(self.source, first, last)
        begin = sum(self.source.layout.lengths[:first])
        inside = (self.places >= begin) & (self.places < begin + source.layout.total)
        places = self.places[inside] - begin
        return MaskedBatch(source, places, self.wanted[inside], self.ids[first:last])


def masked_batch(
    pieces: Sequence[tuple[Tokens, Masked]], eos: int, ids: Sequence[int] | None = None
) -> MaskedBatch:
    """Join B pieces, each its own tokens and how they are masked, into one packed batch.

    ``ids`` names the examples, and dropout knows their rows by it; left out, they are numbered from
    0.
    """
    row_keys = None if ids is None else first_row_keys_of(ids)
    source = make_sources([masked.read for _, masked in pieces], eos, row_keys)
    begins = np.cumsum([0, *source.layout.lengths])[: len(pieces)]
    asked = [masked.places for _, masked in pieces]
    rows = [begin + places for begin, places in zip(begins, asked, strict=True)]
    wanted = [tokens[places] for (tokens, _), places in zip(pieces, asked, strict=True)]
    return MaskedBatch(
        source,
        torch.from_numpy(np.concatenate([np.empty(0, np.int64), *rows])),
        torch.from_numpy(np.concatenate([np.empty(0, np.int64), *wanted]).astype(np.int64)),
        tuple(range(len(pieces)) if ids is None else (int(i) for i in ids)),
    )
