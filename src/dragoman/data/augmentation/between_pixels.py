"""A picture read at places between its pixels (bilinear); what lies outside is the nearest pixel of
the border.

Shapes: H, W, C of a picture.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dragoman.forms.rows.idx import Bytes

Floats = npt.NDArray[np.float32]


@lru_cache(maxsize=8)
def centred(height: int, width: int) -> tuple[Floats, Floats]:
    """(H, 1) rows and (1, W) columns, counted from the middle."""
    down = np.arange(height, dtype=np.float32)[:, None] - (height - 1) / 2
    across = np.arange(width, dtype=np.float32)[None] - (width - 1) / 2
    return down, across


def read_at(pixels: Bytes, rows: Floats, columns: Floats) -> Bytes:
    """The picture at places (H, W) between its pixels."""
    height, width, _ = pixels.shape
    rows = np.clip(rows, 0, height - 1)
    columns = np.clip(columns, 0, width - 1)
    top, left = rows.astype(np.intp), columns.astype(np.intp)
    down, across = (rows - top)[..., None], (columns - left)[..., None]
    below, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    values = pixels.astype(np.float32)
    above = values[top, left] * (1 - across) + values[top, right] * across
    under = values[below, left] * (1 - across) + values[below, right] * across
    return in_bytes(above * (1 - down) + under * down)


def in_bytes(values: Floats) -> Bytes:
    """Rounded, and cut off below 0 and above 255."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
