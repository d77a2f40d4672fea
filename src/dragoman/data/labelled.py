"""Texts and their labels -> the packed tensors of one micro-batch.

A text is read whole, up to a number of tokens; what is behind is not read. So are rows, which no
symbol stands beside. One that a model reads
ends with EOS, as every source does; before one that a model of the left alone goes over stands BOS,
as before every text that it has learned to write.

Shapes: B texts, P packed rows (see ``nn/layout.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import Values, first_row_keys_of, join, join_rows, rows_of
from dragoman.nn.layout import Layout, Sequences
from dragoman.plural import plural


@dataclass(frozen=True)
class TextLayout:
    """How a text is laid before a model."""

    symbol: int | None
    """BOS or EOS; None: there is none."""
    before: bool
    """Whether it stands before the text, and not behind it."""
    longest: int
    """Tokens that are read, the symbol counted."""

    def length(self, tokens: int) -> int:
        """How many of a text's tokens are read, the symbol not counted."""
        return min(tokens, self.longest - self.symbols)

    def size(self, tokens: int) -> int:
        """How many rows are read of a text of so many tokens, the symbol counted."""
        return self.length(tokens) + self.symbols

    @property
    def symbols(self) -> int:
        """How many symbols stand beside a text: 1 or 0."""
        return int(self.symbol is not None)

    def texts(self, texts: Sequence[Values], row_keys: Tensor | None = None) -> Sequences:
        """Join B texts, each cut to what is read of it. ``row_keys``: see ``Layout``."""
        cut = [text[: self.longest - self.symbols] for text in texts]
        if self.symbol is None:
            return Sequences(
                join_rows(cut), Layout([len(one) for one in cut], first_row_keys=row_keys)
            )
        symbol = np.array([self.symbol], np.int32)
        parts = [
            part for text in cut for part in ((symbol, text) if self.before else (text, symbol))
        ]
        return Sequences(
            join(parts), Layout([len(text) + 1 for text in cut], first_row_keys=row_keys)
        )


@dataclass(frozen=True)
class LabelledBatch:
    """One micro-batch: what ``training.objectives.Label`` takes."""

    source: Sequences
    """(P,) int64 ids of the texts."""
    labels: Tensor
    """(B,) int64, the value of each one's label."""
    ids: tuple[int, ...]
    """Which example of the store each text is."""
    others: Tensor | None = None
    """(B,) the label of what each was mixed with; None: nothing is mixed."""
    shares: Tensor | None = None
    """(B,) how much of each is of its own label, from 0 to 1."""

    def __len__(self) -> int:
        """B, the number of texts."""
        return len(self.ids)

    def to(self, device: torch.device | str) -> LabelledBatch:
        """The same batch on another device."""
        labels, others, shares = (
            None if one is None else one.to(device, non_blocking=True)
            for one in (self.labels, self.others, self.shares)
        )
        assert labels is not None
        return LabelledBatch(self.source.to(device), labels, self.ids, others, shares)

    def split(self) -> tuple[LabelledBatch, LabelledBatch]:
        """Two batches with about half of the tokens each, in the same order.

        Raises ValueError if there is but one text.
        """
        if len(self) < 2:
            raise ValueError("a batch of one example cannot be split")
        lengths = np.array(self.source.layout.lengths)
        half = int(np.searchsorted(lengths.cumsum(), lengths.sum() / 2)) + 1
        cut = min(max(half, 1), len(self) - 1)
        return self._part(0, cut), self._part(cut, len(self))

    def summary(self) -> str:
        """How large it is."""
        layout = self.source.layout
        read = f"{plural(len(self), 'text')}, {plural(layout.total, 'token')}"
        return f"{read}, the longest {layout.longest}"

    def _part(self, first: int, last: int) -> LabelledBatch:
        return LabelledBatch(
            rows_of(self.source, first, last), self.labels[first:last], self.ids[first:last],
            None if self.others is None else self.others[first:last],
            None if self.shares is None else self.shares[first:last],
        )  # fmt: skip


def labelled_batch(
    texts: Sequence[Values],
    labels: Sequence[int],
    reading: TextLayout,
    ids: Sequence[int] | None = None,
) -> LabelledBatch:
    """Join B texts and the values of their labels. ``ids`` names the examples, and dropout knows
    their rows by it; left out, they are numbered from 0."""
    row_keys = None if ids is None else first_row_keys_of(ids)
    numbers = range(len(texts)) if ids is None else (int(i) for i in ids)
    values = torch.tensor(list(labels), dtype=torch.int64)
    return LabelledBatch(reading.texts(texts, row_keys), values, tuple(numbers))
