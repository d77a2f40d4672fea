"""The front end for frames of sound: a convolution of 3 x 3 over time and bands with stride 2
for each factor of two, ReLU, and a linear map to the width of the model (Dong et al., 2018,
"Speech-Transformer"). The end of a recording leaks nothing: the padding after it is zero in
every layer, as is the padding before it. ``source.band_heads`` adds an attention before it
(``BandHeads``).

Shapes: B recordings, P packed frames of F bands, P' and D rows and width of the result, T
frames, C channels, H heads.
"""

from __future__ import annotations

import torch
from torch import nn

from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Linear, Precision
from dragoman.nn.settings import AttentionSettings
from dragoman.sources.shared.front_end import Convolution2d, FrontEnd

BAND_WEIGHTS = "front_end.bands"
"""The name of the weights of ``BandHeads`` for probes, (B, H, T, T)."""


class _PlainLinear(Linear):
    """A linear map that always computes in fp32, because it reads frames as they are stored and
    its sizes are no model's."""

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        pass

    def fits(self, precision: Precision) -> bool:
        return True

    def prepare(self, dtype: torch.dtype) -> None:
        pass


class BandHeads(MultiHeadAttention):
    """Self-attention over raw frames whose heads read slices of a filter bank: (P, F) -> (P, F),
    recording by recording.

        x = x + Concat(head_1, ..., head_h) W^O
        head_i = Attention(x_i W_i^Q, x_i W_i^K, x_i W_i^V)          x_i: slice i of the bands of x

    It is the lecture's picture of several heads (80 bands, 4 heads of 20 each), and precedes the
    convolutions, which mix the bands. There are no positions: frames differ only in their sound.
    """

    def __init__(self, bands: int, heads: int) -> None:
        super().__init__(AttentionSettings(num_heads=heads, whole_input=False), bands, BAND_WEIGHTS)
        self.output = _PlainLinear(bands, bands)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """There is only one way to compute it."""

    def heard(self, frames: Sequences) -> Sequences:
        """Return the frames plus the output of the heads."""
        x, layout = frames.values, frames.layout
        return Sequences(x + self(x, layout, x, layout), layout)


class FramesFrontEnd(FrontEnd):
    """The front end of frames of sound, or of columns of a line of text; 2, 4 or 8 become one
    row."""

    def __init__(
        self,
        width: int,
        row_width: int,
        channels: int,
        subsample: int,
        heads: int = 0,
        scale: float = 1.0,
    ) -> None:
        """``width``: D; ``row_width``: F; ``heads``: those of ``BandHeads``, if any; ``scale``:
        a factor for the rows."""
        super().__init__()
        self.scale, halvings = scale, subsample.bit_length() - 1
        self.bands = BandHeads(row_width, heads) if heads else None
        self.attention_names = (BAND_WEIGHTS,) if heads else ()
        self.convolutions = nn.ModuleList(
            Convolution2d(channels if number else 1, channels) for number in range(halvings)
        )
        for _ in range(halvings):
            row_width = -(-row_width // 2)
        self.out = Linear(channels * row_width, width)

    def length(self, rows: int) -> int:
        for _ in self.convolutions:
            rows = -(-rows // 2)
        return rows

    def forward(self, source: Sequences) -> Sequences:
        layout, values = source.layout, source.values.to(self.out.weight.dtype)
        if self.scale != 1:
            values = values * self.scale
        if self.bands is not None:
            values = self.bands.heard(Sequences(values, layout)).values
        grid = layout.pad(values)[:, None]
        for convolution in self.convolutions:  # grid: (B, C, T, F)
            layout = Layout(
                [-(-length // 2) for length in layout.lengths], layout.device, layout.first_row_keys
            )
            grid = torch.relu(convolution(grid))
            if not layout.is_even:
                grid = grid * layout.mask[:, None, :, None].to(grid.dtype)
        rows = layout.pack(grid.transpose(1, 2).flatten(2))  # (P', C x F)
        return Sequences(self.out(rows), layout)
