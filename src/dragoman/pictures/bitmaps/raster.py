"""A grid of grey values as a PNG of a few bytes: what a large matrix is drawn from in SVG.

An ``<svg>`` rectangle per cell would make a 128 x 512 matrix four megabytes; as a mask over the
theme's ink it is some kilobytes, and it follows the light and the dark theme.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray


def grey_png(strengths: NDArray[np.floating]) -> bytes:
    """(R, C) of 0..1 -> an 8-bit grey PNG, one pixel a cell (PNG, ISO/IEC 15948)."""
    rows, columns = strengths.shape
    pixels = np.clip(np.nan_to_num(strengths) * 255, 0, 255).round().astype(np.uint8)
    # A filter byte of 0 ("none") stands before each row.
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, content)
        for kind, content in (
            (b"IHDR", header),
            (b"IDAT", zlib.compress(lines.tobytes(), 9)),
            (b"IEND", b""),
        )
    )


def grey_address(strengths: NDArray[np.floating]) -> str:
    """The same as a ``data:`` address."""
    return "data:image/png;base64," + base64.b64encode(grey_png(strengths)).decode("ascii")


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
