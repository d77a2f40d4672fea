"""Pixels as a PNG file, without a library (https://www.w3.org/TR/png-3/)."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import numpy.typing as npt

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES = {1: 0, 3: 2}
"""Of so many channels: grey, or red, green and blue."""


def png_of(pixels: npt.NDArray[np.uint8]) -> bytes:
    """(H, W, C), with one channel or three."""
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def png_base64(pixels: npt.NDArray[np.uint8]) -> str:
    """``png_of`` as text: for JSON, and for addresses in pages and pictures."""
    return base64.b64encode(png_of(pixels)).decode("ascii")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
