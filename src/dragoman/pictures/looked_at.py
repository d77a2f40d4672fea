"""Where a model looks in what is no text: in pictures, and in a recording.

Of pictures: each picture with its label, below it the same with what counted little dimmed, and the
label that was chosen. Of a recording: the filter bank above, and below it one line of attention for
each word that is written, over the same seconds.

Shapes: H, W, C of a picture; R, S patches from top to bottom and from left to right. T frames, F
bands, W words, S rows of the encoder, each of several frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.text import Text

from dragoman.pictures.attention import short_label
from dragoman.pictures.bitmaps import Pixels, png_base64
from dragoman.pictures.labels import drawn_width, escape, visible
from dragoman.pictures.matrix import ink
from dragoman.pictures.terminal import shade
from dragoman.pictures.theme import FONT_SIZE, svg, text_svg

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


Array = npt.NDArray[np.floating]

_PER_SECOND = 280.0
"""Pixels of a second of sound; wide recordings have fewer."""
_WIDEST = 900.0
_BANDS_HIGH, _WORD_HIGH, _AXIS = 120.0, 22.0, 24.0
"""Pixels."""
_TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds between two numbers of the axis."""
_MOST_TICKS = 12


@dataclass(frozen=True)
class HeardWords:
    """A recording, and where each word that was written of it was heard."""

    bands: Array
    """(T, F) how loud each band is, from 0 to 1; the lowest band first."""
    words: Sequence[str]
    weights: Array
    """(W, S) attention over the recording while each word was written, from 0 to 1."""
    seconds: float
    """How long T frames and S rows are."""
    title: str = ""

    def svg(self) -> str:
        """An SVG file."""
        names = [short_label(visible(word)) for word in self.words]
        left = max((drawn_width(name, FONT_SIZE) for name in names), default=0.0) + 20
        wide = min(_WIDEST, _PER_SECOND * self.seconds)
        top = 26.0 if self.title else 8.0
        parts = []
        if self.title:
            parts.append(f'<text class="muted" x="4" y="16">{escape(self.title)}</text>')
        bands = np.asarray(self.bands, float).T[::-1]
        parts.append(ink(bands, left, top, wide, _BANDS_HIGH, name="bands"))
        at = top + _BANDS_HIGH + 8
        for name, row in zip(names, np.asarray(self.weights, float), strict=True):
            parts.append(text_svg(name, left - 8, at + _WORD_HIGH * 0.68, anchor="end"))
            parts.append(ink(row[None], left, at + 1, wide, _WORD_HIGH - 2, name="looks"))
            at += _WORD_HIGH
        parts += self._axis(left, at, wide)
        right = left + wide + 20
        if self.title:
            right = max(right, drawn_width(self.title, FONT_SIZE) + 12)
        title = escape(self.title or "attention over a recording")
        return svg("".join(parts), right, at + _AXIS + 4, title, alone=True)

    def _axis(self, left: float, top: float, wide: float) -> list[str]:
        step = next((s for s in _TICKS if self.seconds / s <= _MOST_TICKS), _TICKS[-1])
        parts = []
        for number in range(int(self.seconds / step) + 1):
            x, unit = left + wide * number * step / self.seconds, "" if number else " s"
            seconds = f"{number * step:g}{unit}"
            parts.append(text_svg(seconds, x, top + 16, "small muted", "middle"))
        return parts

    def text(self, width: int = 80) -> Text:
        """A line for each word, no wider than ``width``, to be printed by rich."""
        margin = max((len(visible(word)) for word in self.words), default=0) + 2
        count = max(8, min(width - margin, np.shape(self.weights)[1]))
        out = Text()
        for word, row in zip(self.words, np.asarray(self.weights, float), strict=True):
            shares = [part.sum() for part in np.array_split(row, count)]
            out.append(f"{visible(word):<{margin}}")
            out.append("".join(shade(share) for share in shares) + "\n")
        return out
