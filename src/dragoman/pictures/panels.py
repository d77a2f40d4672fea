"""The kinds of panels that figures are made of, beside ``MatrixPicture``: lines, words, heads,
tables, and values with their intervals.

A weight of attention is the strength of one ink, linearly: half the weight, half the ink. Nothing
is scaled to the largest value, so two pictures can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dragoman.pictures.chart import Scale, chart_svg, compact_number
from dragoman.pictures.figure import Cell
from dragoman.pictures.labels import cell_text, escape, text_width, visible
from dragoman.pictures.matrix import Array, MatrixPicture, in_base64, ink, short_label
from dragoman.pictures.records import Chart, Heatmap, Hops, Weights
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


@dataclass(frozen=True)
class LinePanel(Chart):
    """A chart of lines over one axis."""

    size: tuple[float, float] = (420, 260)
    """The width and the height of the picture in pixels."""

    def svg(self) -> str:
        return chart_svg(self, *self.size, last=False)

    def to_dict(self) -> dict[str, Any]:
        chart = asdict(self)
        del chart["size"]
        return {"kind": "lines", "chart": chart}


@dataclass(frozen=True)
class WordWeights:
    """A heatmap of attention weights between words."""

    heatmap: Heatmap

    def svg(self) -> str:
        return heatmap_svg(self.heatmap, alone=False)

    def to_dict(self) -> dict[str, Any]:
        heatmap = self.heatmap
        content = heatmap.title, heatmap.weights, heatmap.rows, heatmap.columns
        return MatrixPicture(*content, cell=(34.0, 30.0), reach=1.0).to_dict()


@dataclass(frozen=True)
class TwoHops:
    """The way from a word, through another, to what decides it."""

    hops: Hops

    def svg(self) -> str:
        return hops_svg(self.hops)

    def to_dict(self) -> dict[str, Any]:
        first, second = self.hops.first.tolist(), self.hops.second.tolist()
        return {"kind": "hops", **asdict(self.hops), "first": first, "second": second}


@dataclass(frozen=True)
class HeadGrid:
    """Every head of every layer as a small picture; weights from 0 to 1, or -1 to 1."""

    title: str
    values: Array
    """(L, H, T, S), the weights of all heads."""
    down: str = "layer"
    across: str = "head"

    def _sides(self) -> tuple[float, float]:
        """The width and height of one small picture, in pixels."""
        _, heads, rows, columns = self.values.shape
        cell = min(12.0, 150.0 / max(rows, columns), 960.0 / (heads * columns))
        return cell * columns, cell * rows

    def svg(self) -> str:
        layers, heads = self.values.shape[:2]
        width, height = self._sides()
        left, top, gap = 62.0, 44.0, 10.0
        parts = [f'<text x="4" y="15">{escape(self.title)}</text>']
        for head in range(heads):
            x = left + (width + gap) * head + width / 2
            name = f"{self.across} {head + 1}"
            parts.append(text_svg(name, x, top - 7, "small muted", "middle"))
        for layer in range(layers):
            y = top + (height + gap) * layer
            middle = y + height / 2 + 4
            name = f"{self.down} {layer + 1}"
            parts.append(text_svg(name, left - 8, middle, "small muted", "end"))
            for head in range(heads):
                x = left + (width + gap) * head
                parts.append(ink(self.values[layer, head], x, y, width, height, name="h"))
        whole = max(left + (width + gap) * heads, text_width(self.title, 13) + 10)
        tall = top + (height + gap) * layers
        return svg("".join(parts), whole, tall, escape(self.title), alone=False)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "heads", **asdict(self), "values": in_base64(self.values)}


@dataclass(frozen=True)
class TextPanel:
    """A small table of words and numbers."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    _line = 21.0

    def _columns(self) -> tuple[list[float], list[bool]]:
        """Width of each column in pixels, and which of them hold numbers."""
        widths, numeric = [], []
        for i, name in enumerate(self.header):
            cells = [cell_text(row[i]) for row in self.rows]
            widths.append(max(text_width(visible(text), 12) for text in (name, *cells)) + 22)
            numeric.append(all(not isinstance(row[i], str) for row in self.rows))
        return widths, numeric

    def svg(self) -> str:
        widths, numeric = self._columns()
        top = 44.0
        parts = [f'<text x="4" y="15">{escape(self.title)}</text>']
        lines = [self.header, *([cell_text(cell) for cell in row] for row in self.rows)]
        for number, line in enumerate(lines):
            x, y = 4.0, top + self._line * number
            kind = "small muted" if number == 0 else "ink"
            for text, width, right in zip(line, widths, numeric, strict=True):
                at, anchor = (x + width - 22, "end") if right else (x, "start")
                parts.append(text_svg(text, at, y, kind, anchor, ' style="font-size:12px"'))
                x += width
            parts.append(f'<path class="rule" d="M4 {y + 6.5:.1f}H{sum(widths) - 10:.1f}"/>')
        whole = max(sum(widths), text_width(self.title, 13) + 10)
        tall = top + self._line * len(lines) - 6
        return svg("".join(parts), whole, tall, escape(self.title), alone=False)

    def to_dict(self) -> dict[str, Any]:
        rows = [[cell_text(cell) for cell in row] for row in self.rows]
        return {"kind": "table", **asdict(self), "rows": rows}


_ROW, _TOP, _BOTTOM, _RIGHT, _ACROSS = 20.0, 56.0, 36.0, 16.0, 330.0


@dataclass(frozen=True)
class IntervalRow:
    """One measured value with its interval."""

    label: str
    value: float | None
    """The value; None if it was not measured."""
    half: float | None = None
    """Half the width of its interval; None: not known."""
    published: float | None = None
    """The value that others have published."""


@dataclass(frozen=True)
class Intervals:
    """A picture of such rows: dots with whiskers, published values as hollow diamonds."""

    title: str
    x_label: str
    rows: Sequence[IntervalRow]

    def svg(self) -> str:
        left = self._margin()
        width = left + _ACROSS + _RIGHT
        height = _TOP + _ROW * len(self.rows) + _BOTTOM
        across = Scale.over(self._ends(), left, left + _ACROSS, log=False)
        bottom = height - _BOTTOM
        parts = [
            f'<text class="ink" x="4" y="16">{escape(self.title)}</text>',
            '<circle class="f0" cx="9" cy="33" r="4"/>',
            '<text class="small muted" x="18" y="37">here, with its 95 % interval</text>',
            f'{_diamond(205, 33)}<text class="small muted" x="214" y="37">the paper</text>',
        ]
        for tick in across.ticks():
            x = across(tick)
            parts.append(
                f'<path class="rule" d="M{x:.1f} {_TOP - 6:.1f}V{bottom:.1f}"/>'
                + text_svg(compact_number(round(tick, 12)), x, bottom + 14, "small muted", "middle")
            )
        x = across(0.0)
        parts.append(f'<path class="axis" d="M{x:.1f} {_TOP - 6:.1f}V{bottom:.1f}"/>')
        for place, row in enumerate(self.rows):
            y = _TOP + _ROW * (place + 0.5)
            parts.append(text_svg(row.label, left - 10, y + 4, "small", "end"))
            if row.published is not None:
                parts.append(_diamond(across(row.published), y))
            if row.value is None:
                end = left + _ACROSS
                parts.append(text_svg("not measured", end, y + 4, "small muted", "end"))
                continue
            if row.half is not None:
                begin = max(across(row.value - row.half), left)
                end = min(across(row.value + row.half), left + _ACROSS)
                whisker = f"M{begin:.1f} {y:.1f}H{end:.1f}"
                parts.append(f'<path class="line s0" stroke-width="1.6" d="{whisker}"/>')
            parts.append(
                f'<circle class="f0" cx="{across(row.value):.1f}" cy="{y:.1f}" r="4">'
                f"<title>{escape(_row_text(row))}</title></circle>"
            )
        middle = left + _ACROSS / 2
        parts.append(text_svg(self.x_label, middle, height - 6, "small muted", "middle"))
        spoken = "; ".join(_row_text(row) for row in self.rows)
        return svg("".join(parts), width, height, escape(f"{self.title}: {spoken}"), alone=False)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "intervals", **asdict(self)}

    def _margin(self) -> float:
        return max((text_width(visible(row.label), 11) for row in self.rows), default=40.0) + 16

    def _ends(self) -> list[float]:
        """The values that its axis must span: all points, and whiskers within reason, so that one
        unsure row does not press the others together."""
        points = [0.0]
        for row in self.rows:
            points += [value for value in (row.value, row.published) if value is not None]
        reach = (max(points) - min(points)) or 1.0
        ends = list(points)
        for row in self.rows:
            if row.value is not None and row.half is not None:
                half = min(row.half, reach)
                ends += [row.value - half, row.value + half]
        return ends


def _diamond(x: float, y: float) -> str:
    return (
        f'<path class="line s1" stroke-width="1.4" d="M{x - 5:.1f} {y:.1f}l5 -5l5 5l-5 5Z">'
        "<title>the paper</title></path>"
    )


def _row_text(row: IntervalRow) -> str:
    if row.value is None:
        return f"{row.label} not measured"
    half = "" if row.half is None else f" ± {compact_number(row.half)}"
    published = "" if row.published is None else f", paper {compact_number(row.published)}"
    return f"{row.label} {compact_number(row.value)}{half}{published}"
