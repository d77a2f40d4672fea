"""The kinds of panels that figures are made of, beside ``MatrixPicture``: lines, words, heads,
tables, and values with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.pictures.attention import heatmap_svg, hops_svg
from dragoman.pictures.chart import Scale, chart_svg, compact_number
from dragoman.pictures.figure import Cell
from dragoman.pictures.labels import cell_text, escape, text_width, visible
from dragoman.pictures.matrix import Array, MatrixPicture, in_base64, ink
from dragoman.pictures.records import Chart, Heatmap, Hops
from dragoman.pictures.theme import svg, text_svg


@dataclass(frozen=True)
class LinePanel:
    """A chart of lines over one axis."""

    chart: Chart
    width: float = 420
    height: float = 260

    def svg(self) -> str:
        return chart_svg(self.chart, self.width, self.height, last=False)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "lines", "chart": asdict(self.chart)}


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
