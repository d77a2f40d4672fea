"""Front ends: the part before the first layer of a model whose source is rows of numbers. A front
end makes rows of the model's width, and often fewer of them.

- ``FramesFrontEnd``, for frames of sound: a convolution of 3 x 3 over time and bands with stride 2
  for each factor of two, ReLU, and a linear map to the width of the model (Dong et al., 2018,
  "Speech-Transformer"). The end of a recording leaks nothing: the padding after it is zero in
  every layer, as is the padding before it. ``source.band_heads`` adds an attention before it
  (``BandHeads``).
- ``PatchesFrontEnd``: a linear map of each patch (Dosovitskiy et al., 2021, equation 1).
- ``StemFrontEnd``: convolutions over a picture until a patch is one place (Xiao et al., 2021,
  "Early convolutions help Transformers see better"). Departure: no batch normalisation.

Shapes: B sources, P packed rows of width F, P' and D rows and width of the result, T x F places of
a grid; C channels, H heads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Computing, Linear, PlainLinear, Precision
from dragoman.nn.settings import AttentionSettings

WHITE = 255.0
"""The value of a white pixel, or of ink, in a byte."""
BAND_WEIGHTS = "front_end.bands"
"""The name of the attention weights (B, H, T, T) of ``BandHeads`` for probes."""
_KERNEL = 3


class FrontEnd(nn.Module):
    """The base of front ends, which turn rows as they are stored into rows of the model's width."""

    across = 0
    """The number of columns if rows form a grid; 0 if they form a line."""
    attention_names: tuple[str, ...] = ()
    """The names, for probes, of the attention weights in the front end."""

    @abstractmethod
    def forward(self, source: Sequences) -> Sequences:
        """Turn (P, F) into (P', D), sequence by sequence; row keys for dropout are kept."""

    def length(self, rows: int) -> int:
        """Return the number of rows that are made from ``rows`` stored rows."""
        return rows


class Convolution2d(Computing):
    """A 3 x 3 convolution with stride 2 in both directions: (B, in, T, F) to (B, out, T / 2, F /
    2), rounded up. It computes in fp32, as the logarithms that it reads need.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, _KERNEL, _KERNEL))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def forward(self, grid: Tensor) -> Tensor:
        return F.conv2d(grid, self.weight, self.bias, stride=2, padding=1)


class BandHeads(MultiHeadAttention):
    """Self-attention over raw frames whose heads read slices of a filter bank: (P, F) -> (P, F),
    recording by recording.

        x = x + Concat(head_1, ..., head_h) W^O
        head_i = Attention(x_i W_i^Q, x_i W_i^K, x_i W_i^V)          x_i: slice i of the bands of x

    This is how the lecture depicts several heads (80 bands, 4 heads of 20 each). It precedes the
    convolutions, which mix the bands. There are no positions: frames differ only in their sound.
    """

    def __init__(self, bands: int, heads: int) -> None:
        super().__init__(AttentionSettings(num_heads=heads, whole_input=False), bands, BAND_WEIGHTS)
        self.output = PlainLinear(bands, bands)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """Do nothing, since there is only one way to compute this attention."""

    def add_heads(self, frames: Sequences) -> Sequences:
        """Return the frames plus the output of the heads."""
        x, layout = frames.values, frames.layout
        return Sequences(x + self(x, layout, x, layout), layout)


class FramesFrontEnd(FrontEnd):
    """The front end for frames of sound, or for the columns of a line of text. 2, 4 or 8 of them
    become one row."""

    def __init__(
        self,
        width: int,
        row_width: int,
        channels: int,
        subsample: int,
        heads: int = 0,
        scale: float = 1.0,
    ) -> None:
        """``width``: D; ``row_width``: F; ``channels``: C; ``subsample``: the number of frames that
        become one row; ``heads``: the number of heads of ``BandHeads``, 0 for none; ``scale``: the
        factor of the stored rows."""
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
            values = self.bands.add_heads(Sequences(values, layout)).values
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


class PatchesFrontEnd(FrontEnd):
    """A linear map of patches of bytes, whose values are scaled from black (0) and white (255)
    to -1 and 1."""

    def __init__(self, width: int, row_width: int, across: int) -> None:
        super().__init__()
        self.across = across
        self.out = Linear(row_width, width)

    def forward(self, source: Sequences) -> Sequences:
        pixels = source.values.to(self.out.weight.dtype) * (2 / WHITE) - 1
        return Sequences(self.out(pixels), source.layout)


class StemFrontEnd(FrontEnd):
    """Convolutions over whole pictures, which are first put together from their patches."""

    def __init__(
        self, width: int, grid: tuple[int, int], side: int, colours: int, channels: int
    ) -> None:
        """``grid``: the numbers of patches from top to bottom and from left to right; ``side``: the
        side of a patch in pixels."""
        super().__init__()
        self.down, self.across = grid
        self.side, self.colours = side, colours
        self.convolutions = nn.ModuleList(
            Convolution2d(channels if number else colours, channels)
            for number in range(side.bit_length() - 1)
        )
        self.out = Linear(channels, width)

    def forward(self, source: Sequences) -> Sequences:
        layout, side, down, across = source.layout, self.side, self.down, self.across
        pixels = source.values.to(self.out.weight.dtype) * (2 / WHITE) - 1
        patches = layout.pad(pixels)  # (B, P, F)
        # Missing patches are padded at the end; convolutions see nothing to the right or below.
        patches = F.pad(patches, (0, 0, 0, down * across - patches.shape[1]))
        grid = patches.view(-1, down, across, side, side, self.colours)
        grid = grid.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)  # (B, C, H, W)
        for convolution in self.convolutions:
            grid = torch.relu(convolution(grid))
        rows = grid.flatten(2).transpose(1, 2)[:, : layout.longest]  # (B, P, C)
        return Sequences(self.out(layout.pack(rows)), layout)


FRONT_ENDS: dict[str, Callable[..., FrontEnd]] = {
    "frames": FramesFrontEnd,
    "patches": PatchesFrontEnd,
    "stem": StemFrontEnd,
}
"""The front ends by the names that sources use for them (``RowsSource.front_end``)."""
