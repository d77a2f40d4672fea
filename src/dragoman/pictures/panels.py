"""The kinds of panels that figures are made of, beside ``MatrixPicture``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.pictures.attention import heatmap_svg, hops_svg
from dragoman.pictures.chart import chart_svg
from dragoman.pictures.figure import Cell
from dragoman.pictures.labels import cell_text, drawn_width, escape, visible
from dragoman.pictures.matrix import Array, MatrixPicture, in_base64, ink
from dragoman.pictures.records import Chart, Heatmap, Hops
from dragoman.pictures.theme import svg, text_svg


@dataclass(frozen=True)
class LinePanel:
    """Lines over one axis."""

    chart: Chart
    width: float = 420
    height: float = 260

    def svg(self) -> str:
        return chart_svg(self.chart, self.width, self.height, last=False)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "lines", "chart": asdict(self.chart)}


@dataclass(frozen=True)
class WordWeights:
    """Attention weights between words."""

    heatmap: Heatmap

    def svg(self) -> str:
        return heatmap_svg(self.heatmap, alone=False)

    def to_dict(self) -> dict[str, Any]:
        one = self.heatmap
        cell = 34.0, 30.0
        matrix = MatrixPicture(one.title, one.weights, one.rows, one.columns, cell=cell, reach=1.0)
        return matrix.to_dict()


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
                parts.append(ink(self.weights[layer, head], x, y, width, height, name="h"))
        whole = max(left + (width + gap) * heads, drawn_width(self.title, 13) + 10)
        tall = top + (height + gap) * layers
        return svg("".join(parts), whole, tall, escape(self.title), alone=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "heads",
            "title": self.title,
            "values": in_base64(self.weights),
            "down": self.down,
            "across": self.across,
        }


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
        whole = max(sum(widths), drawn_width(self.title, 13) + 10)
        tall = top + self._line * len(lines) - 6
        return svg("".join(parts), whole, tall, escape(self.title), alone=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "table",
            "title": self.title,
            "header": list(self.header),
            "rows": [[cell_text(cell) for cell in row] for row in self.rows],
        }
