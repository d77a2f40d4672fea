"""Texts as SVG, each word on the ink of its surprise: -log2 P of a language model, in bits.

The strength of the ink is the number, up to ``MAX_BITS`` bits; two pictures can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.decimals import decimals
from dragoman.pictures.labels import drawn_width, escape, visible
from dragoman.pictures.theme import FONT_SIZE, svg, text_svg

MAX_BITS = 16.0
"""Bits from which the ink is as strong as text can be read on."""

Surprised = tuple[str, float]
"""A word, and its bits."""

_STRONGEST = 0.55
_WIDTH, _MARGIN = 720.0, 16.0
_SIZE, _LINE = 17.0, 44.0
_SPACE = 7.0


def surprise_svg(texts: Sequence[tuple[str, Sequence[Surprised]]]) -> str:
    """Texts beneath each other, each with a heading (or "") and its words in lines -> SVG text.

    Beneath every word stand its bits.
    """
    parts: list[str] = []
    top = _MARGIN
    for heading, words in texts:
        if heading:
            parts.append(text_svg(heading, _MARGIN, top + 12, "muted"))
            top += 26
        drawn, top = _lines(words, top)
        parts += drawn
        top += 16
    parts += _legend(top)
    title = escape(" ".join(word for _, words in texts for word, _ in words))
    return svg("".join(parts), _WIDTH, top + 34, title, alone=True)


def _lines(words: Sequence[Surprised], top: float) -> tuple[list[str], float]:
    """The words from ``top`` on, and where they end."""
    parts: list[str] = []
    left = _MARGIN
    for word, bits in words:
        width = max(drawn_width(visible(word), _SIZE), 20.0)
        if left + width > _WIDTH - _MARGIN and left > _MARGIN:
            left, top = _MARGIN, top + _LINE
        middle = left + width / 2
        parts.append(_ink(left, top, width, 24.0, bits))
        style = f' style="font-size:{_SIZE:g}px"'
        parts.append(text_svg(word, middle, top + 18, "", "middle", style))
        parts.append(text_svg(decimals(bits, 1), middle, top + 36, "muted small", "middle"))
        left += width + _SPACE
    return parts, top + _LINE


def _legend(top: float) -> list[str]:
    parts = []
    left = _MARGIN
    for bits in (0, 4, 8, 12, 16):
        parts.append(_ink(left, top, 34.0, 18.0, bits))
        parts.append(text_svg(str(bits), left + 17, top + 13, "small", "middle"))
        left += 44
    text = "bits a word: each bit more is half as likely"
    parts.append(text_svg(text, left + 8, top + FONT_SIZE, "muted"))
    return parts


def _ink(left: float, top: float, width: float, height: float, bits: float) -> str:
    share = _STRONGEST * min(max(bits, 0.0), MAX_BITS) / MAX_BITS
    return (
        f'<rect class="f1" x="{left - 3:.1f}" y="{top:.1f}" width="{width + 6:.1f}" '
        f'height="{height:g}" rx="4" fill-opacity="{decimals(share, 3)}"/>'
    )
