"""Any matrix as a picture: positive numbers in one ink, negative ones in another.

Weights between words, encodings, queries and keys, scores before the softmax.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.wording import shorten
from dragoman.pictures.bitmaps import grey_address
from dragoman.pictures.labels import escape, text_width, visible
from dragoman.pictures.theme import svg, text_svg

Array = NDArray[np.floating]

_LETTERS = 12
_TURNS_LIGHT = 0.6
_NUMBERED_CELL = 30.0
_MAX_LABEL_WIDTH = 18
# Beyond this many cells a tooltip for each would make the file heavier than the picture is worth.
_CELLS_WITH_TOOLTIPS = 2_500


@dataclass(frozen=True)
class MatrixPicture:
    """A matrix to be drawn. NaN is a cell that does not exist: masked out."""

    title: str
    values: Array
    """(R, C), the numbers to draw."""
    rows: Sequence[str] = ()
    """R labels, or none: then rows are numbered from 0."""
    columns: Sequence[str] = ()
    down: str = ""
    """A text that says what the rows are."""
    across: str = ""
    """A text that says what the columns are."""
    cell: tuple[float, float] = (34.0, 26.0)
    """Width and height of a cell in pixels."""
    reach: float | None = None
    """The number that has full ink; the largest magnitude if not given."""
    is_least_deep: bool = False
    """Deepest at 0 and palest at ``reach``: for numbers of which the least is the best."""
    absent: str = ""
    """The text in cells that do not exist."""

    @property
    def full(self) -> float:
        """The number that is drawn in full ink."""
        if self.reach is not None:
            return self.reach
        finite = np.abs(self.values[np.isfinite(self.values)])
        return float(finite.max(initial=0.0)) or 1.0

    @property
    def depths(self) -> Array:
        """(R, C) how much ink each cell has: -1 to 1, NaN where there is no cell."""
        shares = self.values / self.full
        return 1 - np.abs(shares) if self.is_least_deep else shares

    @property
    def has_negative(self) -> bool:
        """True if both inks are used."""
        return bool((self.values[np.isfinite(self.values)] < 0).any())

    @property
    def legend(self) -> str:
        """The line below the matrix: what the columns are, and how to read the inks."""
        scale = f"deepest = {short_number(0 if self.is_least_deep else self.full)}"
        if self.has_negative:
            scale = f"blue +, orange −, deepest = ±{short_number(self.full)}"
        return f"{self.across}  ·  {scale}" if self.across else scale

    @property
    def left(self) -> float:
        """Room for row labels, in pixels."""
        labels = [short_label(visible(row)) for row in self.rows] or [str(len(self.values))]
        return max(text_width(label, _LETTERS) for label in labels) + 14 + (16 if self.down else 0)

    @property
    def top(self) -> float:
        """Room for title and column labels, in pixels."""
        return 26.0 + (self.slanted and self._longest_column * 0.72 + 6) + 18

    @property
    def slanted(self) -> bool:
        """True if column labels are too long to stand side by side."""
        return bool(self.columns) and self._longest_column > self.cell[0] - 2

    @property
    def _longest_column(self) -> float:
        labels = [short_label(visible(column)) for column in self.columns]
        return max((text_width(label, _LETTERS) for label in labels), default=0.0)

    def svg(self, *, alone: bool = False, of_words: bool = False) -> str:
        """The matrix as SVG with labels, and numbers if the cells have room for them.

        ``of_words``: the numbers are weights between the words of rows and columns. Up to 2,500
        cells tell their words when pointed at, and weights that two digits cannot show are not
        written. ``alone`` adds style and paper.
        """
        count, across = self.values.shape
        width, height = self.cell
        left, top = self.left, self.top
        right = self._longest_column * 0.72 if self.slanted else 0.0
        parts = [f'<text x="4" y="15">{escape(self.title)}</text>']
        parts += _labels(self, left, top)
        tells = of_words and self.values.size <= _CELLS_WITH_TOOLTIPS
        if tells:
            parts += _telling_cells(self, left, top)
        else:
            parts.append(ink(self.depths, left, top, width * across, height * count, name="m"))
        over = _lines(self, left, top) + _numbers(self, left, top, 0.005 if of_words else None)
        parts += ['<g pointer-events="none">', *over, "</g>"] if tells else over
        bottom = top + height * count
        legend = self.legend
        parts.append(text_svg(legend, left, bottom + 16, "small muted"))
        whole = max(
            left + width * across + max(right, 6),
            text_width(self.title, 13) + 10,
            left + text_width(legend, 11.5) + 8,
        )
        return svg("".join(parts), whole, bottom + 24, escape(self.title), alone=alone)

    def to_dict(self) -> dict[str, Any]:
        values = in_base64(self.values)
        return {"kind": "cells", **asdict(self), "values": values, "reach": self.full}


def ink(
    strengths: Array, left: float, top: float, width: float, height: float, *, name: str
) -> str:
    """A grid of -1..1 stretched over a rectangle: f0's ink above zero, f1's below."""
    place = f'x="{left:.2f}" y="{top:.2f}" width="{width:.2f}" height="{height:.2f}"'
    parts = [f'<rect class="f0" {place} fill-opacity="0.035"/>']
    for kind, shown in (("f0", strengths), ("f1", -strengths)):
        positive = np.clip(np.nan_to_num(shown), 0, 1)
        if not positive.any():
            continue
        address = grey_address(positive)
        # Named by content and place: two masks of one page never share a name by accident.
        digest = hashlib.sha256(f"{address}{place}".encode()).hexdigest()[:12]
        mask = f"{name}{digest}"
        parts.append(
            f'<mask id="{mask}" maskUnits="userSpaceOnUse" {place}>'
            f'<image {place} preserveAspectRatio="none" style="image-rendering:pixelated"'
            f' href="{address}"/></mask><rect class="{kind}" {place} mask="url(#{mask})"/>'
        )
    return "".join(parts)


def _labels(matrix: MatrixPicture, left: float, top: float) -> list[str]:
    count, across = matrix.values.shape
    width, height = matrix.cell
    style = f' style="font-size:{_LETTERS}px"'
    parts = []
    for row, label in _ticks(matrix.rows, count, height, 9.0 if matrix.rows else 15.0):
        y = top + height * (row + 0.5) + 4
        parts.append(text_svg(label, left - 6, y, anchor="end", more=style))
    for column, label in _ticks(matrix.columns, across, width, 9.0 if matrix.columns else 26.0):
        x = left + width * (column + 0.5)
        if matrix.slanted:
            turn = f' transform="rotate(-45 {x:.1f} {top - 7:.1f})"'
            parts.append(text_svg(label, x, top - 7, more=turn + style))
        else:
            parts.append(text_svg(label, x, top - 6, anchor="middle", more=style))
    if matrix.down:
        x, y = 12.0, top + height * count / 2
        turn = f' transform="rotate(-90 {x} {y:.1f})"'
        parts.append(text_svg(matrix.down, x, y, "small muted", "middle", turn))
    return parts


def _ticks(labels: Sequence[str], count: int, size: float, least: float) -> list[tuple[int, str]]:
    """Which rows or columns carry a label: every one if named, else round numbers with room."""
    if labels:
        if size < least:
            return []
        return [(i, short_label(visible(label))) for i, label in enumerate(labels)]
    step = next(s for s in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if s * size >= least)
    return [(i, str(i)) for i in range(0, count, step)]


def _lines(matrix: MatrixPicture, left: float, top: float) -> list[str]:
    """Paper-coloured lines between cells that are large enough to be told apart."""
    count, across = matrix.values.shape
    width, height = matrix.cell
    if min(width, height) < 9:
        return []
    right, bottom = left + width * across, top + height * count
    path = "".join(f"M{left + width * c:.1f} {top:.1f}V{bottom:.1f}" for c in range(across + 1))
    path += "".join(f"M{left:.1f} {top + height * r:.1f}H{right:.1f}" for r in range(count + 1))
    return [f'<path class="halo line" style="stroke-width:1.5px" d="{path}"/>']


def _telling_cells(matrix: MatrixPicture, left: float, top: float) -> list[str]:
    """A rectangle for each weight; it names its words when it is pointed at."""
    count, across = matrix.values.shape
    width, height = matrix.cell
    ground = f'width="{width * across:.1f}" height="{height * count:.1f}" fill-opacity="0.035"'
    parts = [f'<g class="f0"><rect x="{left:.1f}" y="{top:.1f}" {ground}/>']
    weights = np.clip(np.nan_to_num(matrix.values), 0.0, 1.0)
    for (row, column), weight in np.ndenumerate(weights):
        place = f'x="{left + width * column:.1f}" y="{top + height * row:.1f}"'
        title = escape(f"{matrix.rows[row]} → {matrix.columns[column]}: {weight:.3f}")
        parts.append(
            f'<rect {place} width="{width:.1f}" height="{height:.1f}"'
            f' fill-opacity="{weight:.3g}"><title>{title}</title></rect>'
        )
    return [*parts, "</g>"]


def _numbers(matrix: MatrixPicture, left: float, top: float, shown_from: float | None) -> list[str]:
    width, height = matrix.cell
    parts: list[str] = []
    if width < _NUMBERED_CELL:
        return parts
    depths = matrix.depths
    for row, column in np.ndindex(*matrix.values.shape):
        value = float(matrix.values[row, column])
        if shown_from is not None and not value >= shown_from:
            continue
        strength = min(abs(float(depths[row, column])), 1.0) if np.isfinite(value) else 0.0
        kind = "on" if strength > _TURNS_LIGHT else "ink" if np.isfinite(value) else "muted"
        x, y = left + width * (column + 0.5), top + height * (row + 0.5) + 4
        text = short_number(value) if np.isfinite(value) else matrix.absent
        parts.append(text_svg(text, x, y, f"small {kind}", "middle"))
    return parts


def short_label(label: str) -> str:
    """One that cannot push the picture off the page."""
    return shorten(label, _MAX_LABEL_WIDTH)


def short_number(value: float) -> str:
    """Three digits at most, a real minus sign; ``≈0`` is not quite nothing."""
    size = abs(value)
    if 0 < size < 0.005:
        return "≈0"
    if size >= 1e4:
        text = f"{value:.1e}".replace("e+0", "e")
    elif size >= 100:
        text = f"{value:.0f}"
    elif size >= 10:
        text = f"{value:.1f}".removesuffix(".0")
    else:
        text = f"{value:.2f}".rstrip("0").rstrip(".") or "0"
    text = "0" if text == "-0" else text
    return text.replace("-", "−")


def in_base64(values: Array) -> dict[str, Any]:
    """An array inside JSON: any shape -> ``shape`` and ``data``, little-endian 32-bit floats in
    base64, the last axis running fastest. That is a third of the size of written numbers, and NaN
    stays NaN, which JSON's own numbers cannot say."""
    data = np.ascontiguousarray(values, dtype="<f4").tobytes()
    return {"shape": list(values.shape), "data": base64.b64encode(data).decode("ascii")}
