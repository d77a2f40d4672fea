"""Attention as SVG: one matrix as a heat map, or two hops from a word to what decides it.

A weight is the strength of one ink, linearly: half the weight, half the ink. Nothing is scaled to
the largest value, so two pictures can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.pictures.labels import escape, text_width, visible
from dragoman.pictures.matrix import MatrixPicture, short_label
from dragoman.pictures.records import Heatmap, Hops, Weights
from dragoman.pictures.theme import FONT_SIZE, svg, text_svg

# Above this strength of ink the paper's colour reads better on it than the text's.
_TURNS_LIGHT = 0.7


def heatmap_svg(heatmap: Heatmap, *, alone: bool = True) -> str:
    """A heat map with a word next to each row and above each column -> SVG text.

    Up to 16 rows and columns show their numbers; up to 2,500 cells tell row, column and weight when
    pointed at. Labels are left out where cells are too small to carry them. ``alone=False`` is for
    a page that brings the style.
    """
    most = max(len(heatmap.rows), len(heatmap.columns), 1)
    side = 34.0 if most <= 16 else max(3.0, min(24.0, 720.0 / most))
    if most <= 80:
        side = max(side, 12.0)  # a label's height
    matrix = MatrixPicture(
        heatmap.title, heatmap.weights, heatmap.rows, heatmap.columns, cell=(side, side), reach=1.0
    )
    return matrix.svg(alone=alone, of_words=True)


def hops_svg(hops: Hops) -> str:
    """Two sentences, one above the other, and the way from a word to what decides it -> SVG text.

    Lines from the target word to the source words are the first hop; arcs below the source are the
    second. A line is as thick and as dark as its weight; weights from 10 % on carry their number.
    """
    target = [short_label(visible(word)) for word in hops.target]
    source = [short_label(visible(word)) for word in hops.source]
    size = FONT_SIZE + 2
    target_x, target_width = _places(target, size)
    source_x, source_width = _places(source, size)
    width = max(target_width, source_width) + 24
    target_x = [x + (width - target_width) / 2 for x in target_x]
    source_x = [x + (width - source_width) / 2 for x in source_x]
    upper, lower = 50.0, 162.0
    spans = [abs(x - source_x[hops.through]) for x in source_x]
    reach = [26 + span * 0.3 for span in spans]
    height = lower + 28 + max(reach, default=0.0) * 0.75 + 22

    parts: list[str] = []
    numbers: list[str] = []
    start = target_x[hops.word]
    for place, weight in _weights_to_draw(hops.first):
        x = source_x[place]
        path = f"M{start:.1f} {upper + 9:.1f}C{start:.1f} {upper + 62:.1f} {x:.1f} {lower - 74:.1f}"
        path += f" {x:.1f} {lower - 20:.1f}"
        parts.append(_line(path, 0, weight))
        if weight >= 0.1:
            numbers.append(_number(x + 5 + weight * 4, lower - 26, weight, 0))
    centre = source_x[hops.through]
    for place, weight in _weights_to_draw(hops.second):
        x = source_x[place]
        if place == hops.through:
            continue
        depth = lower + 10 + reach[place]
        path = f"M{centre:.1f} {lower + 11:.1f}C{centre:.1f} {depth:.1f} {x:.1f} {depth:.1f}"
        path += f" {x:.1f} {lower + 11:.1f}"
        parts.append(_line(path, 1, weight))
        if weight >= 0.1:
            numbers.append(_number(x + 5 + weight * 4, lower + 26, weight, 1))
    parts += numbers
    parts += _words(target, target_x, upper, size, {hops.word: (0, 1.0)})
    strength = {
        i: (1, float(weight))
        for i, weight in enumerate(hops.second)
        if i != hops.through and weight >= 0.05
    }
    parts += _words(source, source_x, lower, size, strength | {hops.through: (0, 1.0)})
    first = _hop_text(target[hops.word], source, hops.first, hops.first_from)
    second = _hop_text(source[hops.through], source, hops.second, hops.second_from)
    parts.append(f'<text class="small f0" x="12" y="18">{escape(first)}</text>')
    parts.append(f'<text class="small f1" x="12" y="{height - 8:.1f}">{escape(second)}</text>')
    width = max(width, text_width(first, 11) + 24, text_width(second, 11) + 24)
    name = escape(f"What decides “{target[hops.word]}”")
    return svg("".join(parts), width, height, name, alone=False)


def _places(labels: Sequence[str], size: float) -> tuple[list[float], float]:
    """The middle of each word on a line, and the line's width."""
    gap, x = 16.0, 0.0
    middles = []
    for label in labels:
        room = max(text_width(label, size), 8.0)
        middles.append(x + room / 2)
        x += room + gap
    return middles, max(x - gap, 0.0)


def _weights_to_draw(weights: Weights) -> list[tuple[int, float]]:
    """Places worth a line, the strongest last so that it is on top."""
    finite = np.clip(np.nan_to_num(np.asarray(weights, dtype=np.float64)), 0.0, 1.0)
    return [(int(i), float(finite[i])) for i in np.argsort(finite) if finite[i] >= 0.02]


def _line(path: str, ink: int, weight: float) -> str:
    drawn = f'stroke-width="{0.8 + 5 * weight:.2f}" stroke-opacity="{0.15 + 0.75 * weight:.2f}"'
    return f'<path class="line s{ink}" d="{path}" {drawn} stroke-linecap="round"/>'


def _number(x: float, y: float, weight: float, ink: int) -> str:
    return text_svg(f"{weight * 100:.0f} %", x, y, f"small halo f{ink}")


def _hop_text(word: str, source: Sequence[str], weights: Weights, origin: str) -> str:
    """The three strongest looks in words: ``it → animal 27 %, tired 24 %, was 9 %``."""
    strongest = [i for i in np.argsort(-weights, kind="stable")[:3] if weights[i] >= 0.01]
    text = f"{word} → " + ", ".join(f"{source[i]} {weights[i] * 100:.0f} %" for i in strongest)
    return f"{text}  ({visible(origin)})" if origin else text


def _words(
    labels: Sequence[str],
    middles: Sequence[float],
    y: float,
    size: float,
    shaded: dict[int, tuple[int, float]],
) -> list[str]:
    """A line of words; ``shaded`` gives some of them a box: its ink and its strength."""
    parts = []
    for i, (label, x) in enumerate(zip(labels, middles, strict=True)):
        kind = ""
        if i in shaded:
            ink, weight = shaded[i]
            room = max(text_width(label, size), 8.0) + 10
            parts.append(
                f'<rect class="f{ink}" x="{x - room / 2:.1f}" y="{y - 16:.1f}"'
                f' width="{room:.1f}" height="24" rx="5" fill-opacity="{weight:.3g}"/>'
            )
            kind = "on" if weight > _TURNS_LIGHT else "ink"
        style = f' style="font-size:{size}px"'
        parts.append(text_svg(label, x, y + 1, kind, "middle", style))
    return parts
