"""A picture in a terminal: each character shows two pixels, one above the other, in colour."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rich.text import Text

_UPPER = "\N{UPPER HALF BLOCK}"


def half_blocks(pixels: npt.NDArray[np.uint8], width: int = 72) -> Text:
    """(H, W, C) pixels; of a picture that is wider than ``width``, every second or third one."""
    step = -(-pixels.shape[1] // width)
    rows = pixels[::step, ::step]
    if rows.shape[0] % 2:
        rows = np.concatenate([rows, rows[-1:]])
    rows = np.broadcast_to(rows, (*rows.shape[:2], 3)) if rows.shape[2] == 1 else rows
    out = Text()
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        for above, below in zip(upper, lower, strict=True):
            out.append(_UPPER, style=f"{_colour(above)} on {_colour(below)}")
        out.append("\n")
    return out


def _colour(pixel: npt.NDArray[np.uint8]) -> str:
    red, green, blue = pixel.tolist()
    return f"rgb({red},{green},{blue})"
