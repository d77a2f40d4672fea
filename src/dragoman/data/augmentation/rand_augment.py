"""RandAugment (Cubuk et al., 2020): some operations, drawn evenly from a list, one after the other,
all as strong as one number says.

The operations and what the strongest of each does are those of the paper (its table 6 and the
implementation that it names), but that what is moved in from outside is the nearest pixel of the
border. Those that have a sign draw it.

Shapes: H, W, C of a picture.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dragoman.data.augmentation.between_pixels import Floats, centred, in_bytes, read_at
from dragoman.forms.rows.idx import Bytes

_ROTATION, _SHEAR, _SHIFT = 30.0, 0.3, 150 / 331
"""Degrees; a share; a share of the size: of the strongest."""
_BLEND = 0.9
"""How far the strongest change of light and colours goes."""
_BITS = 4
"""Of the eight of each colour, those that the strongest posterising leaves out."""


def rand_augmented(
    pixels: Bytes, operations: int, magnitude: float, draw: np.random.Generator
) -> Bytes:
    """A picture (H, W, C) after so many operations; ``magnitude``: from 0 to 1, the strongest."""
    names = list(OPERATIONS)
    for number in draw.integers(0, len(names), operations):
        sign = 1.0 if draw.random() < 0.5 else -1.0
        pixels = OPERATIONS[names[number]](pixels, magnitude, sign)
    return pixels


def _moved(pixels: Bytes, rows: Floats, columns: Floats) -> Bytes:
    """``rows`` and ``columns`` are counted from the middle."""
    height, width, _ = pixels.shape
    shape = (height, width)
    down, across = rows + (height - 1) / 2, columns + (width - 1) / 2
    return read_at(
        pixels, *(np.broadcast_to(one, shape).astype(np.float32) for one in (down, across))
    )


def _rotated(pixels: Bytes, magnitude: float, sign: float) -> Bytes:
    down, across = centred(*pixels.shape[:2])
    angle = np.deg2rad(sign * magnitude * _ROTATION)
    cosine, sine = np.cos(angle), np.sin(angle)
    return _moved(pixels, cosine * down + sine * across, cosine * across - sine * down)


def _sheared(pixels: Bytes, magnitude: float, sign: float, *, across: bool) -> Bytes:
    rows, columns = centred(*pixels.shape[:2])
    much = sign * magnitude * _SHEAR
    if across:
        return _moved(pixels, rows, columns + much * rows)
    return _moved(pixels, rows + much * columns, columns)


def _shifted(pixels: Bytes, magnitude: float, sign: float, *, across: bool) -> Bytes:
    rows, columns = centred(*pixels.shape[:2])
    much = sign * magnitude * _SHIFT * pixels.shape[1 if across else 0]
    return _moved(pixels, rows, columns + much) if across else _moved(pixels, rows + much, columns)


def _stretched(pixels: Bytes, magnitude: float, sign: float) -> Bytes:
    """Each colour from black to white (autocontrast)."""
    low = pixels.min(axis=(0, 1)).astype(np.float32)
    high = pixels.max(axis=(0, 1)).astype(np.float32)
    flat = high == low
    scale = 255 / np.where(flat, 1, high - low)
    found = np.floor((pixels - low) * scale + 1e-3)
    return np.where(flat, pixels, np.clip(found, 0, 255)).astype(np.uint8)


def _equalised(pixels: Bytes, magnitude: float, sign: float) -> Bytes:
    """Each colour as often as any other, as far as can be."""
    found = pixels.copy()
    for colour in range(pixels.shape[2]):
        counts = np.bincount(pixels[..., colour].ravel(), minlength=256)
        used = counts[counts > 0]
        step = int(used[:-1].sum()) // 255
        if len(used) > 1 and step:
            before = np.concatenate([[0], counts.cumsum()[:-1]])
            table = np.minimum((before + step // 2) // step, 255).astype(np.uint8)
            found[..., colour] = table[pixels[..., colour]]
    return found


def _solarised(pixels: Bytes, magnitude: float, sign: float) -> Bytes:
    """What is lighter than a limit is inverted."""
    return np.where(pixels >= 256 - round(256 * magnitude), 255 - pixels, pixels).astype(np.uint8)


def _posterised(pixels: Bytes, magnitude: float, sign: float) -> Bytes:
    """Fewer steps of each colour."""
    return pixels & np.uint8(0xFF << round(_BITS * magnitude) & 0xFF)


def _grey(pixels: Bytes) -> Floats:
    """(H, W, 1) how light each pixel is (ITU-R 601-2)."""
    if pixels.shape[2] == 1:
        return pixels.astype(np.float32)
    return (pixels.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32))[..., None]


def _blended(pixels: Bytes, other: Floats | float, magnitude: float, sign: float) -> Bytes:
    """Nearer to another picture, or farther from it."""
    share = np.float32(1 + sign * magnitude * _BLEND)
    return in_bytes(other + share * (pixels.astype(np.float32) - other))


def _smooth(pixels: Bytes) -> Floats:
    """The mean of each pixel (five times) and its neighbours; the border stays."""
    found = pixels.astype(np.float32)
    inner = 4 * found[1:-1, 1:-1]
    for row in (0, 1, 2):
        for column in (0, 1, 2):
            height, width = inner.shape[:2]
            inner = inner + pixels[row : row + height, column : column + width]
    found[1:-1, 1:-1] = inner / 13
    return found


OPERATIONS: dict[str, Callable[[Bytes, float, float], Bytes]] = {
    "identity": lambda pixels, magnitude, sign: pixels,
    "autocontrast": _stretched,
    "equalise": _equalised,
    "rotate": _rotated,
    "solarise": _solarised,
    "colour": lambda pixels, *how: _blended(pixels, _grey(pixels), *how),
    "posterise": _posterised,
    "contrast": lambda pixels, *how: _blended(pixels, round(float(_grey(pixels).mean())), *how),
    "brightness": lambda pixels, *how: _blended(pixels, 0.0, *how),
    "sharpness": lambda pixels, *how: _blended(pixels, _smooth(pixels), *how),
    "shear across": lambda pixels, *how: _sheared(pixels, *how, across=True),
    "shear down": lambda pixels, *how: _sheared(pixels, *how, across=False),
    "shift across": lambda pixels, *how: _shifted(pixels, *how, across=True),
    "shift down": lambda pixels, *how: _shifted(pixels, *how, across=False),
}
"""Of a picture, how strong, and 1 or -1."""
