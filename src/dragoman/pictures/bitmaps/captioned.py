"""Small pictures beside each other, each with its caption below, as SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from dragoman.pictures.bitmaps.pixels import png_base64

_SIDE, _GAP, _LINE = 160, 16, 15
"""Of a picture, between two of them, and of a line of a caption, in pixels of the drawing."""
_LETTERS = 26
"""Of such a line."""


def captioned_svg(
    pictures: Sequence[npt.NDArray[np.uint8]], captions: Sequence[str], columns: int
) -> str:
    """Pictures (H, W, C) of one size, in rows of ``columns``."""
    lines = [textwrap.wrap(caption, _LETTERS) for caption in captions]
    high = _SIDE + _LINE * max(map(len, lines)) + _GAP + 4
    wide = _SIDE + _GAP
    rows = -(-len(pictures) // columns)
    width, height = columns * wide + _GAP, rows * high + _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11" text-anchor="middle">'
    )
    out = [head, f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for number, (pixels, told) in enumerate(zip(pictures, lines, strict=True)):
        x, y = _GAP + number % columns * wide, _GAP + number // columns * high
        data = png_base64(pixels)
        out.append(
            f'<image x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" '
            f'style="image-rendering: pixelated" href="data:image/png;base64,{data}"/>'
        )
        for row, line in enumerate(told, 1):
            out.append(
                f'<text x="{x + _SIDE // 2}" y="{y + _SIDE + row * _LINE}" fill="#222222">'
                f"{escape(line)}</text>"
            )
    return "\n".join([*out, "</svg>\n"])
