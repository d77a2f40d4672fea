"""An autoencoder of pictures with discrete codes: a picture becomes one code for each of its
patches, and the codes become a picture again.

    rows = W₁ patch + b₁                          each patch of p x p pixels
    rows = rows + W(ReLU(W(ReLU(rows))))          ``blocks`` times
    code = quantise(W₂ rows + b₂)                 (``FiniteScalars``)
    rows = W₃ code + b₃
    rows = rows + Conv(ReLU(Conv(ReLU(rows))))    ``blocks`` times, 3 x 3 over the grid of patches
    pixels = W₄ ReLU(rows) + b₄

A code depends on its patch alone: equal patches have the same code, wherever they are and whatever
is next to them, which a painter (a model that writes codes) learns more easily. The pixels of a
patch also depend on the codes of its neighbours. Departure from DALL-E's and VQ-GAN's autoencoders:
those halve the picture step by step, and their codes depend on neighbouring pixels.

Shapes: B pictures, P patches in all, h x w patches of a picture, D width, F numbers of a patch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.base.errors import RunError
from dragoman.models.encoding import SourceInput
from dragoman.models.interface import AttentionLayer, Memory, Network
from dragoman.models.settings import CodesSettings
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Linear
from dragoman.sources.picture.codes_form import CodeSymbols
from dragoman.sources.picture.form import PictureSource

_EPSILON = 1e-3
"""A margin that keeps the outermost levels within reach of tanh without adding another level (as in
the paper's code)."""


class FiniteScalars:
    """Finite scalar quantisation (Mentzer et al., 2023): a code is a few bounded numbers, each
    rounded to one of a few levels. There is no table of codes to learn, and so none with rows that
    training no longer reaches.

        f(z) = tanh(z + s) h - o        h = (L - 1)(1 - ε) / 2,  o = ½ for an even L, else 0
        quantised = f(z) + stop_gradient(round(f(z)) - f(z))

    s = artanh(o / h), so that z = 0 is mapped to 0. A gradient passes through the rounding as if it
    were not there (Bengio et al., 2013).

    A code has ``len(levels)`` numbers, and the product of ``levels`` is the number of codes.
    Shapes: P rows, N numbers of a code, each with L_n levels.
    """

    def __init__(self, levels: Sequence[int]) -> None:
        self.levels = tuple(levels)
        self.count = math.prod(self.levels)
        self._steps = tuple(math.prod(self.levels[:n]) for n in range(len(self.levels)))

    def limit(self, z: Tensor) -> Tensor:
        """Map any numbers (P, N) to numbers that round to one of their levels: f(z)."""
        levels = z.new_tensor(self.levels)
        half = (levels - 1) * (1 - _EPSILON) / 2
        offset = torch.where(levels % 2 == 0, 0.5, 0.0).to(z.dtype)
        return torch.tanh(z + torch.atanh(offset / half)) * half - offset

    def quantise(self, z: Tensor) -> Tensor:
        """Round numbers (P, N) to levels around 0, so that a gradient passes through."""
        bounded = self.limit(z)
        return bounded + (bounded.round() - bounded).detach()

    def codes(self, quantised: Tensor) -> Tensor:
        """Return the codes (P,) int64, from 0, of levels (P, N) around 0."""
        return ((quantised.round().long() + self._zero(quantised)) * self._step(quantised)).sum(-1)

    def levels_of(self, codes: Tensor) -> Tensor:
        """Return the levels (P, N) around 0, in fp32, of codes (P,): the inverse of ``codes``."""
        counts = torch.tensor(self.levels, device=codes.device)
        digits = codes[:, None] // self._step(codes) % counts
        return (digits - self._zero(codes)).float()

    def scale(self, quantised: Tensor) -> Tensor:
        """Scale levels around 0 to numbers from -1 to 1, which a decoder reads."""
        return quantised / self._zero(quantised).to(quantised.dtype)

    def _zero(self, like: Tensor) -> Tensor:
        """Return (N,) the number of levels below 0 of each number of a code."""
        return torch.tensor([level // 2 for level in self.levels], device=like.device)

    def _step(self, like: Tensor) -> Tensor:
        return torch.tensor(self._steps, device=like.device)


_KERNEL = 3
_WHITE = 255.0
_SMALL = 0.1
"""The gain of a block's second layer, so that at first the block adds little."""


class GridConvolution(nn.Module):
    """A convolution of 3 x 3 over grids (B, h, w, D), computed as one linear map of the neighbours
    of each place. Places outside of the grid are zero."""

    def __init__(self, width: int, gain: float = 1.0) -> None:
        super().__init__()
        self.linear = Linear(_KERNEL * _KERNEL * width, width, gain=gain)

    def forward(self, grid: Tensor) -> Tensor:
        down, across = grid.shape[1:3]
        around = F.pad(grid, (0, 0, 1, 1, 1, 1))
        windows = [
            around[:, y : y + down, x : x + across] for y in range(_KERNEL) for x in range(_KERNEL)
        ]
        seen: Tensor = self.linear(torch.cat(windows, -1))
        return seen


class ResidualBlock(nn.Module):
    """Two layers, whose result is added to their input (He et al., 2016)."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, rows: Tensor) -> Tensor:
        added: Tensor = self.second(torch.relu(self.first(torch.relu(rows))))
        return rows + added


def patch_block(width: int) -> ResidualBlock:
    """Make a block that works on each patch alone."""
    return ResidualBlock(Linear(width, width), Linear(width, width, gain=_SMALL))


def grid_block(width: int) -> ResidualBlock:
    """Make a block that works on each patch and its neighbours."""
    return ResidualBlock(GridConvolution(width), GridConvolution(width, gain=_SMALL))


class PictureCodes(Network):
    """The autoencoder. ``project(encode(pictures).rows)`` reconstructs pictures, with values from
    -1 to 1; ``codes`` and ``pictures`` are its two halves."""

    settings: CodesSettings

    def __init__(self, settings: CodesSettings, source: SourceInput, outputs: int = 0) -> None:
        """``source``: the settings of the rows that are read, which must be pictures. ``outputs``
        is not used: it follows from ``source``."""
        super().__init__()
        assert not isinstance(source, int), "pictures are no tokens"
        self.settings, self._source = settings, PictureSource.of(source)
        self.scalars = FiniteScalars(settings.levels)
        width, numbers = settings.model_dim, len(settings.levels)
        self.read = Linear(source.row_width, width)
        self.encoder = nn.Sequential(*(patch_block(width) for _ in range(settings.blocks)))
        self.inner = Linear(width, numbers, gain=2.0)
        self.outer = Linear(numbers, width)
        self.decoder = nn.Sequential(*(grid_block(width) for _ in range(settings.blocks)))
        self.out = Linear(width, source.row_width)

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return ()

    @property
    def output_layer(self) -> Linear:
        return self.out

    def encode(self, source: Sequences) -> Memory:
        return Memory(self._decode(self._quantise(source.values)), source.layout)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        pixels: Tensor = self.out(hidden)
        return pixels if ids is None else pixels[..., ids]

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        return {}

    def codes(self, patches: Tensor) -> Tensor:
        """Return the code of each patch, (P,) int64, for the bytes (P, F) of whole pictures."""
        return self.scalars.codes(self._quantise(patches))

    def pictures(self, codes: Tensor) -> Tensor:
        """Return the bytes (P, F) of whole pictures for their codes (P,)."""
        pixels = self.project(self._decode(self.scalars.levels_of(codes)))
        return bytes_of(pixels)

    def _quantise(self, patches: Tensor) -> Tensor:
        rows = self.read(scale_bytes(patches, self.read.weight.dtype))
        rows = self.encoder(rows)
        # The last numbers are computed in fp32 whatever comes before: a code is rounded by them.
        return self.scalars.quantise(self.inner(rows).float())

    def _decode(self, quantised: Tensor) -> Tensor:
        rows = self.outer(self.scalars.scale(quantised))
        decoded: Tensor = self.decoder(self._grid(rows)).flatten(0, 2)
        return torch.relu(decoded)

    def _grid(self, rows: Tensor) -> Tensor:
        """Arrange rows as the grids of their pictures: (P, D) -> (B, h, w, D)."""
        return rows.view(-1, *self._source.grid, rows.shape[-1])


def scale_bytes(patches: Tensor, dtype: torch.dtype) -> Tensor:
    """Scale bytes from black (0) to white (255) to numbers from -1 to 1."""
    return patches.to(dtype) * (2 / _WHITE) - 1


def bytes_of(pixels: Tensor) -> Tensor:
    """Turn numbers from -1 to 1 into bytes, the inverse of ``scale_bytes``. Values beyond black
    or white become black or white."""
    return ((pixels.float() + 1) * (_WHITE / 2)).round().clamp(0, _WHITE).to(torch.uint8)


_TOGETHER = 256
"""The number of pictures that are computed at once."""


class PictureCoder:
    """A trained autoencoder that works on arrays: it converts pictures to codes and codes to
    pictures, on the CPU, in fp32 (``sources/picture/codes_form.py`` uses it)."""

    def __init__(self, network: PictureCodes, patches: int) -> None:
        self._network = network.eval()
        self._patches = patches

    @classmethod
    def of(cls, symbols: CodeSymbols, weights: Mapping[str, Tensor], where: str) -> PictureCoder:
        """Make the coder from ``weights``. Errors: ``RunError``, naming ``where``, for weights of
        another autoencoder."""
        try:
            settings = CodesSettings.model_validate(symbols.model)
            network = PictureCodes(settings, symbols.source)
            network.load_state_dict(dict(weights))
        except (ValueError, RuntimeError) as error:
            raise RunError(
                f"{where} does not hold the weights that codes.json describes"
            ) from error
        return cls(network, symbols.places)

    def codes(self, patches: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        codes: npt.NDArray[np.int64] = self._by_patch(self._network.codes, patches)
        return codes

    def pictures(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        patches: npt.NDArray[np.uint8] = self._by_patch(self._network.pictures, codes)
        return patches

    def _by_patch(self, work: Callable[[Tensor], Tensor], given: npt.NDArray[Any]) -> Any:
        """Apply ``work`` to the patches of some pictures at a time: (B, P, ...) -> (B, P, ...)."""
        with torch.inference_mode():
            parts = [
                work(torch.from_numpy(part).flatten(0, 1))
                for part in np.array_split(given, -(-len(given) // _TOGETHER))
            ]
        return torch.cat(parts).unflatten(0, (-1, self._patches)).numpy()
