"""What stands before the first layer of a network: an embedding of tokens, or the front end that
the source of its rows makes (``sources/NAME/front_end.py``), whatever the model.

``ClassToken`` puts a learned row before the rows of another front end (Dosovitskiy et al., 2021,
equation 1).

Shapes: P packed rows of width F, P' and D what is made of them.
"""

from __future__ import annotations

import torch
from torch import nn

from dragoman.nn.layout import Layout, Sequences
from dragoman.sources.shared.front_end import FrontEnd
from dragoman.sources.shared.settings import RowsSource

SourceInput = int | RowsSource
"""What a network reads: so many different tokens, or rows."""


class ClassToken(FrontEnd):
    """A learned row that stands first in each sequence."""

    def __init__(self, made: FrontEnd, width: int) -> None:
        super().__init__()
        self.made, self.across = made, made.across
        self.token = nn.Parameter(torch.empty(width))
        nn.init.normal_(self.token, std=width**-0.5)

    def length(self, rows: int) -> int:
        return 1 + self.made.length(rows)

    def forward(self, source: Sequences) -> Sequences:
        rows, old = self.made(source), source.layout.first_row_keys
        lengths = [1 + length for length in rows.layout.lengths]
        layout = Layout(lengths, rows.layout.device, old)
        kept = layout.positions > 0
        values = self.token.to(rows.values.dtype).expand(layout.total, -1).clone()
        return Sequences(values.index_copy(0, kept.nonzero()[:, 0], rows.values), layout)


def front_end(source: SourceInput, width: int) -> FrontEnd | None:
    """The front end of a network of that width; None: an embedding stands there."""
    return None if isinstance(source, int) else source.front_end(width)
