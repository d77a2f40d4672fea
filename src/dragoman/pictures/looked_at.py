"""Pictures with their labels, and where a model looked in each: the picture, below it the same with
what counted little dimmed, and the label that was chosen.

Shapes: H, W, C of a picture; R, S patches from top to bottom and from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.pictures.attention import short_label
from dragoman.pictures.bitmaps import Pixels, png_base64
from dragoman.pictures.labels import escape
from dragoman.pictures.theme import svg

_SIDE, _GAP, _LINE = 120.0, 16.0, 18.0
"""Pixels of a drawn picture, between two, and of a line of text."""
_ACROSS = 4
"""Pictures side by side."""
_LEAST_LIGHT = 0.12
"""What is left of a patch that counted for nothing."""


class LookedAt(NamedTuple):
    """A picture, what was chosen for it, and what counted."""

    pixels: Pixels
    """(H, W, C)."""
    shares: npt.NDArray[np.floating]
    """(R, S) how much each patch counted; they sum to 1."""
    label: str
    """That was chosen."""
    probability: float
    true: str
    """The right label."""

    @property
    def said(self) -> str:
        """Label and probability."""
        return f"{short_label(self.label)} {100 * self.probability:.0f} %"

    @property
    def dimmed(self) -> Pixels:
        """The picture, each patch as light as its share says; the largest is as it was."""
        height, width, _ = self.pixels.shape
        rows, columns = self.shares.shape
        patch = np.ones((height // rows, width // columns))
        seen = np.kron(self.shares / max(float(self.shares.max()), 1e-12), patch)[..., None]
        lit = self.pixels * (_LEAST_LIGHT + (1 - _LEAST_LIGHT) * seen)
        found: Pixels = np.rint(lit).astype(np.uint8)
        return found


def looked_at_svg(title: str, looked: Sequence[LookedAt]) -> str:
    """An SVG file."""
    top, high = 2 * _LINE, 2 * _SIDE + 2 * _LINE + _GAP
    parts = [f'<text x="{_GAP}" y="{_LINE + 2}">{escape(title)}</text>']
    for number, one in enumerate(looked):
        left = _GAP + number % _ACROSS * (_SIDE + _GAP)
        at = top + number // _ACROSS * high
        wrong = f", not {short_label(one.true)}" if one.label != one.true else ""
        style = ' class="f1"' if wrong else ""
        parts += [
            _image(one.pixels, left, at),
            _image(one.dimmed, left, at + _SIDE + 4),
            f'<text x="{left}" y="{at + 2 * _SIDE + _LINE + 2}"{style}>{escape(one.said)}</text>',
            f'<text class="small f1" x="{left}" y="{at + 2 * _SIDE + 2 * _LINE - 2}">'
            f"{escape(wrong.removeprefix(', '))}</text>" if wrong else "",
        ]  # fmt: skip
    wide = _GAP + min(_ACROSS, max(1, len(looked))) * (_SIDE + _GAP)
    rows = -(-len(looked) // _ACROSS)
    said = "; ".join(one.said for one in looked)
    return svg("".join(parts), wide, top + rows * high, escape(f"{title}: {said}"), alone=True)


def _image(pixels: Pixels, left: float, top: float) -> str:
    address = png_base64(pixels)
    return (
        f'<image x="{left}" y="{top}" width="{_SIDE}" height="{_SIDE}" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{address}"/>'
    )
