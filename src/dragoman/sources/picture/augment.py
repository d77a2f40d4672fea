"""Pictures are varied in training, so that a model learns what stays the same. One number
determines all changes, so that a picture of an update is varied alike in any batch and process,
and after a resume.

Pictures are moved, turned, made larger or smaller, sheared, bent, mirrored, lighter or darker,
partly hidden, or mixed. All moves of pixels are one map from the places of the new picture to
those of the old one, which is interpolated (bilinear; places outside have the nearest pixel of the
border).

Shapes: H, W, C of a picture.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dragoman.base.settings import Settings
from dragoman.sources.picture.idx import Bytes

Floats = npt.NDArray[np.float32]
_ERASED = 0.5
"""The share of pictures that have a part hidden."""
_BENDS = 4
"""The number of places along each side that are bent independently; others are interpolated."""


class PictureAugmentSettings(Settings):
    """Pictures are varied in training. Each limit is that of a number drawn evenly for each picture
    and update."""

    shift: float = Field(default=0.0, ge=0, le=1)
    """The farthest that a picture is moved, across and down, as a share of its size (usually 0.1).
    0: not at all."""
    rotation: float = Field(default=0.0, ge=0, le=180)
    """The largest rotation, in degrees, in both directions (usually 10)."""
    scale: float = Field(default=0.0, ge=0, lt=1)
    """The largest change of size, as a share, larger or smaller (usually 0.1)."""
    shear: float = Field(default=0.0, ge=0, le=1)
    """The largest shear, as a share (usually 0.1)."""
    bend: float = Field(default=0.0, ge=0, le=1)
    """The farthest that parts of a picture are moved against each other, as a share of its size
    (usually 0.05 for handwriting; Simard et al., 2003)."""
    flip: bool = False
    """Mirror every second picture, left to right. Not for digits, letters, or whatever else has a
    left and a right."""
    contrast: float = Field(default=0.0, ge=0, lt=1)
    """The largest change of contrast, as a share (usually 0.3)."""
    brightness: float = Field(default=0.0, ge=0, lt=1)
    """The largest change of brightness, as a share of white (usually 0.1)."""
    erase: float = Field(default=0.0, ge=0, le=1)
    """The largest share of a picture that a rectangle of noise hides, in every second picture
    (usually 0.2; Zhong et al., 2020)."""
    mixup: float = Field(default=0.0, ge=0, le=4)
    """Mix each picture with another one, and their labels in the same shares, which are drawn from
    a beta distribution with this parameter (usually 0.2; Zhang et al., 2018). For labels alone. 0:
    not at all."""

    @property
    def is_on(self) -> bool:
        """True if any property of pictures is varied."""
        others = self.flip, self.contrast, self.brightness, self.erase, self.mixup
        return self.moves or any(others)

    @property
    def moves(self) -> bool:
        """True if pixels are moved, other than by mirroring."""
        return any((self.shift, self.rotation, self.scale, self.shear, self.bend))


def vary(pixels: Bytes, settings: PictureAugmentSettings, seed: int) -> Bytes:
    """Return a copy of a picture (H, W, C), varied by ``seed``, from 0."""
    draw = np.random.default_rng(seed)
    picture = pixels
    if settings.moves:
        picture = read_at(picture, *_places(picture.shape[:2], settings, draw))
    if settings.flip and draw.random() < 0.5:
        picture = picture[:, ::-1]
    if settings.contrast or settings.brightness:
        picture = _lit(picture, settings, draw)
    if settings.erase and draw.random() < _ERASED:
        picture = _erase(picture, settings.erase, draw)
    return np.array(picture)


def _places(
    size: tuple[int, int], settings: PictureAugmentSettings, draw: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return (H, W) rows and (H, W) columns of the old picture for each pixel of the new one."""
    height, width = size
    down, across = _centred_axes(height, width)
    angle = np.deg2rad(_even(draw, settings.rotation))
    larger = (1 + settings.scale) ** _even(draw, 1.0)
    shear = _even(draw, settings.shear)
    cosine, sine = np.cos(angle) / larger, np.sin(angle) / larger
    rows = cosine * down + sine * across
    columns = (cosine * shear - sine) * down + (cosine + sine * shear) * across
    rows += (height - 1) / 2 + height * _even(draw, settings.shift)
    columns += (width - 1) / 2 + width * _even(draw, settings.shift)
    if settings.bend:
        bends = draw.uniform(-settings.bend, settings.bend, (2, _BENDS, _BENDS))
        by_row, by_column = _spread(height), _spread(width)
        rows += height * (by_row @ bends[0] @ by_column.T)
        columns += width * (by_row @ bends[1] @ by_column.T)
    return rows.astype(np.float32), columns.astype(np.float32)


def _even(draw: np.random.Generator, most: float) -> float:
    return float(draw.uniform(-most, most)) if most else 0.0


@lru_cache(maxsize=8)
def _centred_axes(height: int, width: int) -> tuple[Floats, Floats]:
    """Return (H, 1) rows and (1, W) columns, counted from the middle."""
    down = np.arange(height, dtype=np.float32)[:, None] - (height - 1) / 2
    across = np.arange(width, dtype=np.float32)[None] - (width - 1) / 2
    return down, across


def read_at(pixels: Bytes, rows: Floats, columns: Floats) -> Bytes:
    """Return the picture at places (H, W) between its pixels."""
    height, width, _ = pixels.shape
    rows = np.clip(rows, 0, height - 1)
    columns = np.clip(columns, 0, width - 1)
    top, left = rows.astype(np.intp), columns.astype(np.intp)
    down, across = (rows - top)[..., None], (columns - left)[..., None]
    below, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    values = pixels.astype(np.float32)
    above = values[top, left] * (1 - across) + values[top, right] * across
    under = values[below, left] * (1 - across) + values[below, right] * across
    return _in_bytes(above * (1 - down) + under * down)


def _in_bytes(values: Floats) -> Bytes:
    """Return the values rounded and clipped to bytes."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


@lru_cache(maxsize=8)
def _spread(size: int) -> Floats:
    """Return (size, bends): the weight of each bend at each place, interpolated linearly."""
    at = np.linspace(0, _BENDS - 1, size)
    felt: Floats = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(_BENDS))).astype(np.float32)
    return felt


def _lit(pixels: Bytes, settings: PictureAugmentSettings, draw: np.random.Generator) -> Bytes:
    values = pixels.astype(np.float32)
    middle = values.mean()
    more = 1 + _even(draw, settings.contrast)
    return _in_bytes((values - middle) * more + middle + 255 * _even(draw, settings.brightness))


def _erase(pixels: Bytes, most: float, draw: np.random.Generator) -> Bytes:
    """Return a picture with a rectangle of noise, of any shape between 1 to 3 and 3 to 1."""
    height, width, _ = pixels.shape
    share, stretch = draw.uniform(0, most), 3 ** _even(draw, 1.0)
    tall = min(height, round(height * np.sqrt(share * stretch)))
    wide = min(width, round(width * np.sqrt(share / stretch)))
    top, left = (int(draw.integers(0, room + 1)) for room in (height - tall, width - wide))
    copy = np.array(pixels)
    part = copy[top : top + tall, left : left + wide]
    part[:] = draw.integers(0, 256, part.shape, dtype=np.uint8)
    return copy


def mix(pixels: Bytes, others: Bytes, share: float) -> Bytes:
    """Mix ``share`` of one picture with the rest of another of the same size."""
    first, second = pixels.astype(np.float32), others.astype(np.float32)
    return _in_bytes(second + np.float32(share) * (first - second))


def mixing(alpha: float, count: int, seed: int) -> tuple[float, int]:
    """Return the share of a picture, and which of ``count`` examples it is mixed with, by
    ``seed``."""
    draw = np.random.default_rng(seed)
    return float(draw.beta(alpha, alpha)), int(draw.integers(count))
