"""A figure: computed numbers, the panels that draw them, and a caption in two languages.

Whoever computes a figure fills in ``Figure``; it becomes SVG, PNG, CSV, or a page of the
book. Panels are drawn by ``panels.py`` and ``matrix.py``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dragoman.pictures.labels import escape
from dragoman.pictures.theme import svg

_WIDEST = 1090.0
_GAP = 22.0
_MARGIN = 8.0

Cell = str | int | float


@dataclass(frozen=True)
class Words:
    """The same text in both languages of the book."""

    english: str
    korean: str


class Panel(Protocol):
    """One picture of a figure."""

    def svg(self) -> str:
        """A whole ``<svg>`` element that leaves style and paper to what it is put into."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """What it draws, for a page that draws it itself; ``kind`` says which panel it is."""
        ...


@dataclass(frozen=True)
class DataTable:
    """Numbers of a figure, as a table that becomes one CSV file."""

    name: str
    """Appended to the figure's name in the file's name; "" for the main one."""
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def csv(self) -> str:
        """RFC 4180 with line feeds; numbers keep nine digits."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.header)
        for row in self.rows:
            writer.writerow([f"{cell:.9g}" if type(cell) is float else cell for cell in row])
        return out.getvalue()


@dataclass(frozen=True)
class Figure:
    """All there is to show and to say of one figure."""

    name: str
    """What ``dragoman figure`` calls it."""
    title: Words
    caption: Words
    """What it shows, and how to read it."""
    source: Words
    """Section and equation of the paper that it comes from."""
    panels: Sequence[Panel]
    data: Sequence[DataTable]
    run: str = ""
    """Which trained run it looks into; "" if it needs none."""
    notes: Sequence[Words] = field(default=())
    """What this run in particular shows, in numbers that were measured."""


def figure_svg(figure: Figure, *, alone: bool = True) -> str:
    """All panels of a figure as one SVG: from left to right, a new row where the page ends.
    ``alone=False`` is for a page that brings the style."""
    title = escape(figure.title.english)
    body = [f"<title>{title}</title>", f"<desc>{escape(figure.caption.english)}</desc>"]
    x = y = _MARGIN
    tallest = widest = 0.0
    for panel in figure.panels:
        element = panel.svg().strip()
        width, height = _size(element)
        if x > _MARGIN and x + width > _WIDEST:
            x, y, tallest = _MARGIN, y + tallest + _GAP, 0.0
        body.append(element.replace("<svg ", f'<svg x="{x:.1f}" y="{y:.1f}" ', 1))
        widest, tallest = max(widest, x + width), max(tallest, height)
        x += width + _GAP
    whole = widest + _MARGIN, y + tallest + _MARGIN
    return svg("".join(body), *whole, title, alone=alone)


def csv_files(figure: Figure) -> dict[str, str]:
    """File name -> content of every table of a figure."""
    return {
        f"{figure.name}{f'-{table.name}' if table.name else ''}.csv": table.csv()
        for table in figure.data
    }


def _size(element: str) -> tuple[float, float]:
    found = re.match(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', element)
    assert found is not None, "a panel draws an <svg> with a width and a height"
    return float(found[1]), float(found[2])
