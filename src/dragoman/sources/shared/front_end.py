"""The interface of a front end, and the parts that several front ends share.

A front end precedes the first layer of a model whose source is rows of numbers. It makes rows of
the model's width, and often fewer of them.

Shapes: B sources, P packed rows of width F, P' and D rows and width of the result, T x F places
of a grid.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Computing, Precision

WHITE = 255.0
"""The value of a white pixel, or of ink, in a byte."""
_KERNEL = 3


class FrontEnd(nn.Module):
    """This class turns rows as they are stored into rows of the model's width."""

    across = 0
    """The number of columns if rows form a grid; 0 if they form a line."""
    attention_names: tuple[str, ...] = ()
    """The names of the attention weights in it, for probes."""

    @abstractmethod
    def forward(self, source: Sequences) -> Sequences:
        """Turn (P, F) into (P', D), sequence by sequence; row keys for dropout are kept."""

    def length(self, rows: int) -> int:
        """Return the number of rows that are made of ``rows``."""
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

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """There is only one way to compute it."""

    def forward(self, grid: Tensor) -> Tensor:
        return F.conv2d(grid, self.weight, self.bias, stride=2, padding=1)
