"""Where a model looks in a recording while it writes each word: the filter bank above, and below it
one line of attention for each word, over the same seconds.

Shapes: T frames, F bands, W words, S rows of the encoder, each of several frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.text import Text

from dragoman.pictures.attention import short_label
from dragoman.pictures.labels import drawn_width, escape, visible
from dragoman.pictures.matrix import ink
from dragoman.pictures.terminal import shade
from dragoman.pictures.theme import FONT_SIZE, svg, text_svg

Array = npt.NDArray[np.floating]

_PER_SECOND = 280.0
"""Pixels of a second of sound; wide recordings have fewer."""
_WIDEST = 900.0
_BANDS_HIGH, _LINE, _AXIS = 120.0, 22.0, 24.0
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

    def svg(self, *, alone: bool = True) -> str:
        """SVG text. ``alone=False`` is for a page that brings the style."""
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
            parts.append(text_svg(name, left - 8, at + _LINE * 0.68, anchor="end"))
            parts.append(ink(row[None], left, at + 1, wide, _LINE - 2, name="looks"))
            at += _LINE
        parts += self._axis(left, at, wide)
        right = left + wide + 20
        if self.title:
            right = max(right, drawn_width(self.title, FONT_SIZE) + 12)
        title = escape(self.title or "attention over a recording")
        return svg("".join(parts), right, at + _AXIS + 4, title, alone=alone)

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
