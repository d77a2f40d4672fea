"""What stands before the first layer where a source is rows of numbers: rows of another width and
length are made of them, whatever the model.

- ``FramesFrontEnd``: a convolution of 3 x 3 over time and bands for each factor of two, of which
  every second place is kept, ReLU, and a linear map to the width of the model (Dong et al., 2018,
  "Speech-Transformer"). Nothing leaks across the end of a recording: what stands behind it is zero
  in every layer, as what stands before its beginning.
  ``source.band_heads`` puts an attention before it (``BandHeads``).
- ``LineFrontEnd``: the same over the columns of a line of text, in which paper is zero.
- ``PatchesFrontEnd``: a linear map of each patch (Dosovitskiy et al., 2021, equation 1).
- ``ClassToken``: a learned row before those that another front end makes (equation 1 as well).
- ``StemFrontEnd``: the same convolutions over a picture, until a patch is one place (Xiao et al.,
  2021, "Early convolutions help Transformers see better"). Departure: no batch normalisation.

Shapes: B sources, P packed rows of width F, P' and D what is made of them, T frames, C channels,
H x W pixels.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Computing, Linear, Precision
from dragoman.nn.settings import AttentionSettings
from dragoman.sources.frames.settings import FramesSource
from dragoman.sources.line.settings import LineSource
from dragoman.sources.picture.settings import PictureSource
from dragoman.sources.shared.settings import RowsSource

BAND_WEIGHTS = "front_end.bands"
"""What probes know the weights of ``BandHeads`` by, (B, H, T, T)."""


class _PlainLinear(Linear):
    """In fp32 always: it reads frames as they are stored, and its sizes are no model's."""

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        pass

    def fits(self, precision: Precision) -> bool:
        return True

    def prepare(self, dtype: torch.dtype) -> None:
        pass


class BandHeads(MultiHeadAttention):
    """Heads over slices of a filter bank: self-attention over raw frames, in which each head reads
    its own bands: (P, F) -> (P, F), recording by recording.

        x = x + Concat(head_1, ..., head_h) W^O
        head_i = Attention(x_i W_i^Q, x_i W_i^K, x_i W_i^V)          x_i: slice i of the bands of x

    It is the lecture's picture of several heads (80 bands, 4 heads of 20 each), and stands before
    the convolutions, which mix the bands. There are no positions: frames are told apart by what is
    heard.
    """

    def __init__(self, bands: int, heads: int) -> None:
        super().__init__(AttentionSettings(num_heads=heads, whole_input=False), bands, BAND_WEIGHTS)
        self.output = _PlainLinear(bands, bands)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """There is one way."""

    def heard(self, frames: Sequences) -> Sequences:
        """The frames, and what the heads add to them."""
        x, layout = frames.values, frames.layout
        return Sequences(x + self(x, layout, x, layout), layout)


SourceInput = int | RowsSource
"""What a network reads: so many different tokens, or rows."""

_KERNEL = 3
_WHITE = 255.0


class FrontEnd(nn.Module):
    """Rows as they are stored -> rows of the model's width."""

    @abstractmethod
    def forward(self, source: Sequences) -> Sequences:
        """(P, F) -> (P', D), sequence by sequence; dropout knows a sequence by the same name."""

    def length(self, rows: int) -> int:
        """How many rows are made of so many."""
        return rows


class Convolution2d(Computing):
    """Every second place in both directions of a 3 x 3 convolution: (B, in, T, F) to
    (B, out, T / 2, F / 2), rounded up. It computes in fp32, as the logarithms that it reads need.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, _KERNEL, _KERNEL))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """There is one way."""

    def forward(self, grid: Tensor) -> Tensor:
        return F.conv2d(grid, self.weight, self.bias, stride=2, padding=1)


class FramesFrontEnd(FrontEnd):
    """Frames of sound, of which two or four become one row."""

    def __init__(self, settings: FramesSource | LineSource, width: int) -> None:
        super().__init__()
        channels, halvings = settings.channels, settings.subsample.bit_length() - 1
        bands = settings.row_width
        heads = settings.band_heads if isinstance(settings, FramesSource) else 0
        self.bands = BandHeads(bands, heads) if heads else None
        self.convolutions = nn.ModuleList(
            Convolution2d(channels if number else 1, channels) for number in range(halvings)
        )
        for _ in range(halvings):
            bands = -(-bands // 2)
        self.out = Linear(channels * bands, width)

    def length(self, rows: int) -> int:
        for _ in self.convolutions:
            rows = -(-rows // 2)
        return rows

    def forward(self, source: Sequences) -> Sequences:
        layout, values = source.layout, self.scaled(source.values.to(self.out.weight.dtype))
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

    def scaled(self, values: Tensor) -> Tensor:
        """(P, F) rows as they are stored -> what the first convolution reads."""
        return values


class LineFrontEnd(FramesFrontEnd):
    """Columns of pixels, of which two, four or eight become one row: bytes from paper (0) to ink
    (255), which become 0 to 2."""

    def scaled(self, values: Tensor) -> Tensor:
        return values * (2 / _WHITE)


class PatchesFrontEnd(FrontEnd):
    """Patches of pictures, of bytes from black (0) to white (255), which become -1 to 1."""

    def __init__(self, settings: PictureSource, width: int) -> None:
        super().__init__()
        self.out = Linear(settings.row_width, width)

    def forward(self, source: Sequences) -> Sequences:
        pixels = source.values.to(self.out.weight.dtype) * (2 / _WHITE) - 1
        return Sequences(self.out(pixels), source.layout)


class StemFrontEnd(FrontEnd):
    """Patches of whole pictures, which become one picture again before they are read."""

    def __init__(self, settings: PictureSource, width: int) -> None:
        super().__init__()
        self._settings = settings
        channels, halvings = settings.stem_channels, settings.patch.bit_length() - 1
        self.convolutions = nn.ModuleList(
            Convolution2d(channels if number else settings.channels, channels)
            for number in range(halvings)
        )
        self.out = Linear(channels, width)

    def forward(self, source: Sequences) -> Sequences:
        layout, settings = source.layout, self._settings
        side, down, across = settings.patch, *settings.grid
        pixels = source.values.to(self.out.weight.dtype) * (2 / _WHITE) - 1
        patches = layout.pad(pixels)  # (B, P, F)
        # What is not read stands behind, and a place sees nothing to its right or below it.
        patches = F.pad(patches, (0, 0, 0, settings.patches - patches.shape[1]))
        grid = patches.view(-1, down, across, side, side, settings.channels)
        grid = grid.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)  # (B, C, H, W)
        for convolution in self.convolutions:
            grid = torch.relu(convolution(grid))
        rows = grid.flatten(2).transpose(1, 2)[:, : layout.longest]  # (B, P, C)
        return Sequences(self.out(layout.pack(rows)), layout)


class ClassToken(FrontEnd):
    """A learned row that stands first in each sequence."""

    def __init__(self, made: FrontEnd, width: int) -> None:
        super().__init__()
        self.made = made
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
    """What stands before the first layer of a network of that width; None: an embedding does."""
    if isinstance(source, int):
        return None
    if isinstance(source, FramesSource):
        return FramesFrontEnd(source, width)
    if isinstance(source, LineSource):
        return LineFrontEnd(source, width)
    assert isinstance(source, PictureSource)
    made = PatchesFrontEnd if source.stem == "linear" else StemFrontEnd
    return made(source, width)
