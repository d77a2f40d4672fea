"""The kinds of panels that figures are made of, each drawn as SVG and by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.pictures.attention import heatmap_svg, hops_svg
from dragoman.pictures.base64_array import in_base64
from dragoman.pictures.chart import chart_svg
from dragoman.pictures.figure import Cell, PanelBox
from dragoman.pictures.labels import drawn_width, escape, visible
from dragoman.pictures.matrix import Array, MatrixPicture, ink, matrix_svg
from dragoman.pictures.plain_table import cell_text
from dragoman.pictures.records import Chart, Heatmap, Hops
from dragoman.pictures.theme import svg

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class LinePanel:
    """Lines over one axis."""

    chart: Chart
    width: float = 420
    height: float = 260

    def svg(self) -> str:
        return chart_svg(self.chart, self.width, self.height, alone=False, last=False)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "lines", "chart": asdict(self.chart)}

    def paint(self, page: matplotlib.figure.Figure, box: PanelBox) -> None:
        from dragoman.pictures.figure_png import axes_in
        from dragoman.pictures.png import draw_chart

        draw_chart(axes_in(page, box, left=52, top=26, right=14, bottom=38), self.chart)


@dataclass(frozen=True)
class Cells:
    """A matrix of any numbers."""

    matrix: MatrixPicture

    def svg(self) -> str:
        return matrix_svg(self.matrix)

    def to_dict(self) -> dict[str, Any]:
        matrix = self.matrix
        return {
            "kind": "cells",
            "title": matrix.title,
            "values": in_base64(matrix.values),
            "rows": list(matrix.rows),
            "columns": list(matrix.columns),
            "down": matrix.down,
            "across": matrix.across,
            "cell": list(matrix.cell),
            "reach": matrix.full,
            "is_least_deep": matrix.is_least_deep,
            "absent": matrix.absent,
        }

    def paint(self, page: matplotlib.figure.Figure, box: PanelBox) -> None:
        from dragoman.pictures.figure_png import axes_in, draw_matrix

        (width, height), (rows, columns) = self.matrix.cell, self.matrix.values.shape
        left, top = self.matrix.left, self.matrix.top
        right = box.width - left - width * columns
        axes = axes_in(page, box, left, top, right, box.height - top - height * rows)
        draw_matrix(axes, self.matrix)


@dataclass(frozen=True)
class WordWeights:
    """Attention weights between words."""

    heatmap: Heatmap

    def svg(self) -> str:
        return heatmap_svg(self.heatmap, alone=False)

    def to_dict(self) -> dict[str, Any]:
        heatmap = self.heatmap
        return {
            "kind": "cells",
            "title": heatmap.title,
            "values": in_base64(heatmap.weights),
            "rows": list(heatmap.rows),
            "columns": list(heatmap.columns),
            "down": "",
            "across": "",
            "cell": [34.0, 30.0],
            "reach": 1.0,
            "is_least_deep": False,
            "absent": "",
        }

    def paint(self, page: matplotlib.figure.Figure, box: PanelBox) -> None:
        from dragoman.pictures.figure_png import axes_in, draw_words

        left = max((drawn_width(row, 13) for row in self.heatmap.rows), default=0.0) + 20
        above = max((drawn_width(column, 13) for column in self.heatmap.columns), default=0.0)
        top = 22 + (above + 20) * 0.71 + 10
        right = above * 0.71
        axes = axes_in(page, box, left, top, right, 10)
        draw_words(axes, self.heatmap, _title_at(box, left, right))


@dataclass(frozen=True)
class TwoHops:
    """The way from a word, through another, to what decides it."""

    hops: Hops

    def svg(self) -> str:
        return hops_svg(self.hops, alone=False)

    def to_dict(self) -> dict[str, Any]:
        hops = self.hops
        return {
            "kind": "hops",
            "source": list(hops.source),
            "target": list(hops.target),
            "word": hops.word,
            "through": hops.through,
            "first": [float(weight) for weight in hops.first],
            "second": [float(weight) for weight in hops.second],
            "first_from": hops.first_from,
            "second_from": hops.second_from,
        }

    def paint(self, page: matplotlib.figure.Figure, box: PanelBox) -> None:
        """As two rows of a heat map: lines and arcs are for SVG."""
        hops = self.hops
        rows = (f"{hops.target[hops.word]} →", f"{hops.source[hops.through]} →")
        weights = np.stack([hops.first, hops.second])
        title = f"{hops.first_from}; {hops.second_from}"
        WordWeights(Heatmap(rows, hops.source, weights, title)).paint(page, box)


@dataclass(frozen=True)
class HeadGrid:
    """Every head of every layer as a small picture; weights from 0 to 1, or -1 to 1."""

    title: str
    weights: Array
    """(L, H, T, S)."""
    down: str = "layer"
    across: str = "head"

    def _sides(self) -> tuple[float, float]:
        """Pixels of one small picture."""
        _, heads, rows, columns = self.weights.shape
        cell = min(12.0, 150.0 / max(rows, columns), 960.0 / (heads * columns))
        return cell * columns, cell * rows

    def svg(self) -> str:
        layers, heads = self.weights.shape[:2]
        width, height = self._sides()
        left, top, gap = 62.0, 44.0, 10.0
        parts = [f'<text x="4" y="15">{escape(visible(self.title))}</text>']
        for head in range(heads):
            x = left + (width + gap) * head + width / 2
            parts.append(
                f'<text class="small muted" x="{x:.1f}" y="{top - 7}" text-anchor="middle">'
                f"{self.across} {head + 1}</text>"
            )
        for layer in range(layers):
            y = top + (height + gap) * layer
            middle = y + height / 2 + 4
            parts.append(
                f'<text class="small muted" x="{left - 8}" y="{middle:.1f}" text-anchor="end">'
                f"{self.down} {layer + 1}</text>"
            )
            for head in range(heads):
                x = left + (width + gap) * head
                parts.append(ink(self.weights[layer, head], x, y, width, height, name="h"))
        whole = max(left + (width + gap) * heads, drawn_width(self.title, 13) + 10)
        tall = top + (height + gap) * layers
        return svg("".join(parts), whole, tall, escape(visible(self.title)), alone=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "heads",
            "title": self.title,
            "values": in_base64(self.weights),
            "down": self.down,
            "across": self.across,
        }

    def paint(self, page: matplotlib.figure.Figure, box: PanelBox) -> None:
        """All heads as tiles of one matrix, a row and a column of nothing between them."""
        from dragoman.pictures.figure_png import axes_in, draw_tiles

        axes = axes_in(page, box, 62, 44, 10, 10)
        at = _title_at(box, 62, 10)
        draw_tiles(axes, self.weights, self.title, at, self.down, self.across)


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
            widths.append(max(drawn_width(visible(text), 12) for text in (name, *cells)) + 22)
            numeric.append(all(not isinstance(row[i], str) for row in self.rows))
        return widths, numeric

    def svg(self) -> str:
        widths, numeric = self._columns()
        top = 44.0
        parts = [f'<text x="4" y="15">{escape(visible(self.title))}</text>']
        lines = [self.header, *([cell_text(cell) for cell in row] for row in self.rows)]
        for number, line in enumerate(lines):
            x, y = 4.0, top + self._line * number
            kind = "small muted" if number == 0 else "ink"
            for text, width, right in zip(line, widths, numeric, strict=True):
                at, anchor = (x + width - 22, "end") if right else (x, "start")
                parts.append(
                    f'<text class="{kind}" x="{at:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
                    f' style="font-size:12px">{escape(visible(text))}</text>'
                )
                x += width
            parts.append(f'<path class="rule" d="M4 {y + 6.5:.1f}H{sum(widths) - 10:.1f}"/>')
        whole = max(sum(widths), drawn_width(self.title, 13) + 10)
        tall = top + self._line * len(lines) - 6
        return svg("".join(parts), whole, tall, escape(visible(self.title)), alone=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "table",
            "title": self.title,
            "header": list(self.header),
            "rows": [[cell_text(cell) for cell in row] for row in self.rows],
        }

    def paint(self, page: matplotlib.figure.Figure, box: PanelBox) -> None:
        from dragoman.pictures.figure_png import axes_in, draw_table

        widths, numeric = self._columns()
        lines = [self.header, *([cell_text(cell) for cell in row] for row in self.rows)]
        axes = axes_in(page, box, 0, 0, 0, 0)
        draw_table(axes, self.title, lines, widths, numeric, box)


def _title_at(box: PanelBox, left: float, right: float) -> float:
    """Where a title begins, in widths of the axes that have these margins: where the panel does.
    The SVG has it there, whose width has room for just that."""
    return (4 - left) / max(box.width - left - right, 1)
