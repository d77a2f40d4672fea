"""Arrays of pixels as PNG, without a library (https://www.w3.org/TR/png-3/), and in a terminal."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import numpy.typing as npt
from rich.text import Text

Pixels = npt.NDArray[np.uint8]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES = {1: 0, 3: 2}
"""PNG's colour type for each number of channels: grey, or red, green and blue."""
_UPPER = "\N{UPPER HALF BLOCK}"


def png_of(pixels: Pixels, level: int = -1) -> bytes:
    """(H, W, C), with one channel or three. ``level``: of compression, as ``zlib`` has it."""
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), level)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def png_base64(pixels: Pixels, level: int = -1) -> str:
    """``png_of`` as text: for JSON, and for addresses in pages and pictures."""
    return base64.b64encode(png_of(pixels, level)).decode("ascii")


def grey_address(strengths: npt.NDArray[np.floating]) -> str:
    """(R, C) of 0..1 -> a grey PNG, one pixel a cell, as a ``data:`` address: what a large matrix
    is drawn from in SVG. A rectangle per cell would make one of 128 x 512 four megabytes; as a mask
    over the theme's ink it is some kilobytes, and it follows the light and the dark theme."""
    grey = np.clip(np.nan_to_num(strengths) * 255, 0, 255).round().astype(np.uint8)
    return f"data:image/png;base64,{png_base64(grey[..., None], 9)}"


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def half_blocks(pixels: Pixels, width: int = 72) -> Text:
    """(H, W, C) pixels in a terminal, in colour: each character shows two, one above the other. Of
    a picture that is wider than ``width``, every second or third one is shown."""
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


def _colour(pixel: Pixels) -> str:
    red, green, blue = pixel.tolist()
    return f"rgb({red},{green},{blue})"
