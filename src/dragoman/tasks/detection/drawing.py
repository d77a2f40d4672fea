"""Drawings of boxes over a picture: as SVG, as PNG (with Pillow), and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from rich.text import Text

from dragoman.pictures.bitmaps import png_base64
from dragoman.pictures.labels import visible

if TYPE_CHECKING:
    from dragoman.tasks.detection.detector import Detection

COLOURS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#9a6324", "#808000")
"""The colours of the categories, used in turn. White letters are readable on each."""
_SMALLEST = 480
"""The smallest length of the longer side of a drawing, in pixels: smaller pictures are enlarged."""
_DARK_TO_LIGHT = " .:-=+*#%@"

Bytes = npt.NDArray[np.uint8]


def boxes_svg(pixels: Bytes, boxes: Sequence[Detection]) -> str:
    """Draw a picture (H, W, C) and its boxes as SVG; the most probable box is drawn last."""
    height, width = pixels.shape[:2]
    scale = _scale(height, width)
    colours = _colours(boxes)
    names = "; ".join(map(_name, boxes)) or "no box"
    wide, high = width * scale, height * scale
    rendering = "pixelated" if scale > 1 else "auto"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" role="img" aria-label="{escape(names)}" font-family="sans-serif" '
        'font-size="14">'
    )
    picture = (
        f'<image width="{wide}" height="{high}" style="image-rendering:{rendering}" '
        f'href="data:image/png;base64,{png_base64(pixels)}"/>'
    )
    parts = [head, picture]
    for box in reversed(boxes):
        left, top, right, bottom = (scale * edge for edge in box.box.edges)
        name, colour, at = _name(box), colours[box.label], max(top, 18)
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{bottom - top:.1f}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<rect x="{left:.1f}" y="{at - 18:.1f}" width="{8.5 * len(name) + 6:.1f}" '
            f'height="18" fill="{colour}"/>'
            f'<text x="{left + 3:.1f}" y="{at - 4:.1f}" fill="#fff">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def boxes_png(pixels: Bytes, boxes: Sequence[Detection]) -> bytes:
    """Draw a picture (H, W, C) and its boxes as PNG."""
    from PIL import Image, ImageDraw

    height, width = pixels.shape[:2]
    scale = _scale(height, width)
    whole = Image.fromarray(pixels.squeeze()).convert("RGB")
    resample = Image.Resampling.NEAREST
    whole = whole.resize((width * scale, height * scale), resample) if scale > 1 else whole
    draw, colours = ImageDraw.Draw(whole), _colours(boxes)
    for box in reversed(boxes):
        left, top, right, bottom = (scale * edge for edge in box.box.edges)
        draw.rectangle((left, top, right, bottom), outline=colours[box.label], width=2)
        name, at = _name(box), max(top, 12)
        around = draw.textbbox((left + 3, at - 12), name)
        draw.rectangle((left, at - 12, around[2] + 3, at), fill=colours[box.label])
        draw.text((left + 3, at - 12), name, fill="white")
    held = BytesIO()
    whole.save(held, "PNG")
    return held.getvalue()


def boxes_text(pixels: Bytes, boxes: Sequence[Detection], width: int) -> Text:
    """Draw a picture (H, W, C) in characters, at most ``width`` in a line, with the edges of its
    boxes and the name of each in its upper left corner. ``.plain`` of the result is the text
    without colours."""
    from PIL import Image

    high, wide = pixels.shape[:2]
    columns = min(width, 2 * wide)
    rows = max(1, round(columns * high / wide / 2))
    grey = Image.fromarray(pixels.squeeze()).convert("L").resize((columns, rows))
    steps = np.asarray(grey).astype(int) * len(_DARK_TO_LIGHT) // 256
    letters = [[_DARK_TO_LIGHT[step] for step in row] for row in steps]
    styles = [["dim"] * columns for _ in range(rows)]
    colours = _colours(boxes)

    def put(row: int, column: int, letter: str, colour: str) -> None:
        if 0 <= row < rows and 0 <= column < columns:
            letters[row][column], styles[row][column] = letter, colour

    for box in reversed(boxes):
        edges = box.box.edges
        left, right = (min(int(edge * columns / wide), columns - 1) for edge in edges[::2])
        top, bottom = (min(int(edge * rows / high), rows - 1) for edge in edges[1::2])
        colour = colours[box.label]
        for column in range(left, right + 1):
            put(top, column, "─", colour)
            put(bottom, column, "─", colour)
        for row in range(top, bottom + 1):
            put(row, left, "│", colour)
            put(row, right, "│", colour)
        for row, column, corner in (
            (top, left, "┌"), (top, right, "┐"), (bottom, left, "└"), (bottom, right, "┘"),
        ):  # fmt: skip
            put(row, column, corner, colour)
        for place, letter in enumerate(visible(box.label)[: max(1, right - left - 1)]):
            put(top, left + 1 + place, letter, f"bold {colour}")
    out = Text()
    for line, row_styles in zip(letters, styles, strict=True):
        for letter, style in zip(line, row_styles, strict=True):
            out.append(letter, style=style)
        out.append("\n")
    return out


def _name(detection: Detection) -> str:
    return f"{visible(detection.label)} {detection.score:.2f}"


def _scale(height: int, width: int) -> int:
    return max(1, _SMALLEST // max(height, width))


def _colours(boxes: Sequence[Detection]) -> dict[str, str]:
    labels = sorted({box.label for box in boxes})
    return {label: COLOURS[number % len(COLOURS)] for number, label in enumerate(labels)}
