"""A figure: computed numbers, the panels that draw them, and a caption in two languages.

Whoever computes a figure fills in ``Figure``; it becomes SVG, PNG, CSV, a page of the book, or
``to_dict`` for a web page. Panels are drawn by ``panels.py``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.pictures.labels import escape
from dragoman.pictures.theme import svg

if TYPE_CHECKING:
    import matplotlib.figure

_WIDEST = 1090.0
_GAP = 22.0
_MARGIN = 8.0

Cell = str | int | float


@dataclass(frozen=True)
class Words:
    """The same text in both languages of the book."""

    english: str
    korean: str


@dataclass(frozen=True)
class PanelBox:
    """Where a panel lies in its figure, in pixels from the upper left."""

    left: float
    top: float
    width: float
    height: float


class Panel(Protocol):
    """One picture of a figure."""

    def svg(self) -> str:
        """A whole ``<svg>`` element that leaves style and paper to what it is put into."""
        ...

    def paint(self, page: matplotlib.figure.Figure, box: PanelBox) -> None:
        """The same by matplotlib, into ``box`` of a page of known size (see ``place``)."""
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

    def to_dict(self) -> dict[str, Any]:
        """For JSON: words, numbers, the picture, and what each of its panels draws."""
        return {
            "name": self.name,
            "title": {"en": self.title.english, "ko": self.title.korean},
            "caption": {"en": self.caption.english, "ko": self.caption.korean},
            "notes": [{"en": note.english, "ko": note.korean} for note in self.notes],
            "source": {"en": self.source.english, "ko": self.source.korean},
            "run": self.run,
            "svg": figure_svg(self, alone=False),
            "panels": [panel.to_dict() for panel in self.panels],
            "data": [
                {"name": t.name, "header": list(t.header), "rows": [list(r) for r in t.rows]}
                for t in self.data
            ],
        }


@dataclass(frozen=True)
class Laid:
    """Panels laid out on a page: rows of what fits side by side."""

    width: float
    height: float
    boxes: Sequence[PanelBox]


def lay_out(panels: Sequence[str]) -> Laid:
    """Place ``<svg>`` elements from left to right, a new row where the page ends."""
    boxes: list[PanelBox] = []
    x = y = _MARGIN
    tallest = widest = 0.0
    for panel in panels:
        width, height = _size(panel)
        if x > _MARGIN and x + width > _WIDEST:
            x, y, tallest = _MARGIN, y + tallest + _GAP, 0.0
        boxes.append(PanelBox(x, y, width, height))
        widest = max(widest, x + width)
        tallest = max(tallest, height)
        x += width + _GAP
    return Laid(widest + _MARGIN, y + tallest + _MARGIN, boxes)


def figure_svg(figure: Figure, *, alone: bool = True) -> str:
    """All panels of a figure as one SVG. ``alone=False`` is for a page that brings the style."""
    drawn = [panel.svg() for panel in figure.panels]
    laid = lay_out(drawn)
    body = [f"<title>{escape(figure.title.english)}</title>"]
    body.append(f"<desc>{escape(figure.caption.english)}</desc>")
    for element, box in zip(drawn, laid.boxes, strict=True):
        at = f'<svg x="{box.left:.1f}" y="{box.top:.1f}" '
        body.append(element.strip().replace("<svg ", at, 1))
    title = escape(figure.title.english)
    return svg("".join(body), laid.width, laid.height, title, alone=alone)


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
