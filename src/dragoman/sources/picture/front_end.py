"""The front ends for patches of pictures.

- ``PatchesFrontEnd``: a linear map of each patch (Dosovitskiy et al., 2021, equation 1).
- ``StemFrontEnd``: convolutions over a picture until a patch is one place (Xiao et al., 2021,
  "Early convolutions help Transformers see better"). Departure: no batch normalisation.

Shapes: B pictures of H x W pixels and C channels, P packed patches of width F, D what is made of
them.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Linear
from dragoman.sources.shared.front_end import WHITE, Convolution2d, FrontEnd


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
    """Convolutions over whole pictures, which are put together from their patches."""

    def __init__(
        self, width: int, grid: tuple[int, int], side: int, colours: int, channels: int
    ) -> None:
        """``grid``: patches from top to bottom and from left to right; ``side``: the pixels of a
        patch."""
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
