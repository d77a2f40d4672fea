"""Heads over slices of a filter bank: self-attention over raw frames, in which each head reads its
own bands.

    x = x + Concat(head_1, ..., head_h) W^O
    head_i = Attention(x_i W_i^Q, x_i W_i^K, x_i W_i^V)          x_i: slice i of the bands of x

It is the lecture's picture of several heads (80 bands, 4 heads of 20 each), and stands before the
convolutions, which mix the bands. There are no positions: frames are told apart by what is heard.

Shapes: P packed frames, F bands.
"""

from __future__ import annotations

import torch

from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Linear, Precision
from dragoman.nn.settings import AttentionSettings

NAME = "front_end.bands"
"""What probes know its weights by, (B, H, T, T)."""


class _PlainLinear(Linear):
    """In fp32 always: it reads frames as they are stored, and its sizes are no model's."""

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        pass

    def fits(self, precision: Precision) -> bool:
        return True

    def prepare(self, dtype: torch.dtype) -> None:
        pass


class BandHeads(MultiHeadAttention):
    """(P, F) -> (P, F), recording by recording."""

    def __init__(self, bands: int, heads: int) -> None:
        super().__init__(AttentionSettings(num_heads=heads, whole_input=False), bands, NAME)
        self.output = _PlainLinear(bands, bands)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """There is one way."""

    def heard(self, frames: Sequences) -> Sequences:
        """The frames, and what the heads add to them."""
        x, layout = frames.values, frames.layout
        return Sequences(x + self(x, layout, x, layout), layout)
