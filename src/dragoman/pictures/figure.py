"""A figure: computed numbers, the panels that draw them, and a caption in two languages.

A figure becomes SVG, PNG, CSV, or a section of the book: one HTML page with every picture inside,
captions in English and Korean. The book makes no request and needs no script; with one, a reader
chooses the language, and the page begins in the browser's. Panels are drawn by ``panels.py`` and
``matrix.py``.

PNG is the figure's own SVG, drawn by resvg (``dragoman[plots]``) with the fonts of the machine.
Letters that no installed font has are drawn as boxes; SVG leaves that choice to the reader.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from dragoman.base.atomic import write_bytes, write_text
from dragoman.base.errors import DragomanError, install
from dragoman.pictures.labels import escape
from dragoman.pictures.theme import page_html, part, svg, text_svg

_WIDEST = 1090.0
_GAP = 22.0
_MARGIN = 8.0

Cell = str | int | float


@dataclass(frozen=True)
class Words:
    """A text in both languages of the figures, English and Korean."""

    english: str
    korean: str


class Panel(Protocol):
    """One picture of a figure, as SVG and as data."""

    def svg(self) -> str:
        """A whole ``<svg>`` element that leaves style and paper to what it is put into."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Its data, for a page that draws it itself; ``kind`` says which panel it is."""
        ...


@dataclass(frozen=True)
class DataTable:
    """Numbers of a figure, as a table that becomes one CSV file."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    name: str = ""
    """Appended to the figure's name in the file's name; "" for the main one."""

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
    """The name of the figure for ``dragoman figure``."""
    title: Words
    caption: Words
    """A text that says what the figure shows, and how to read it."""
    source: Words
    """Section and equation of the paper that it comes from."""
    panels: Sequence[Panel]
    data: Sequence[DataTable]
    run: str = ""
    """Which trained run it looks into; "" if it needs none."""
    notes: Sequence[Words] = field(default=())
    """The findings for this run in particular, in numbers that were measured."""


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
    match = re.match(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', element)
    assert match is not None, "a panel draws an <svg> with a width and a height"
    return float(match[1]), float(match[2])


_PIXELS = 1.3
"""The pixels of a PNG file for each unit of its SVG."""


def write_figure(folder: Path, figure: Figure, ending: str = "") -> list[Path]:
    """Write the picture with this ``ending`` (.svg or .png), and its numbers as CSV. Without an
    ending: SVG, and also PNG if this machine can draw it. Return the files.

    Errors: ``FileError`` when the disk is full; ``DragomanError`` for PNG that cannot be drawn.
    """
    endings = [ending] if ending else [".svg", *([] if why_no_png() else [".png"])]
    pictures = [folder / f"{figure.name}{kind}" for kind in endings]
    for path in pictures:
        if path.suffix == ".svg":
            write_text(path, figure_svg(figure))
        else:
            write_bytes(path, png_of_svg(figure_svg(figure)))
    files = csv_files(figure)
    for name, content in files.items():
        write_text(folder / name, content)
    return [*pictures, *(folder / name for name in files)]


def png_of_svg(picture: str) -> bytes:
    """Draw an SVG that stands alone as PNG, in light colours. Raises ``DragomanError`` if this
    machine cannot (``why_no_png``)."""
    if why := why_no_png():
        raise DragomanError(f"{why}. SVG and HTML need nothing.")
    from resvg_py import svg_to_bytes

    return svg_to_bytes(svg_string=picture, zoom=_PIXELS)


@cache
def why_no_png() -> str:
    """Return why this machine cannot draw PNG files, and what to install; "" if it can."""
    if find_spec("resvg_py") is None:
        return f"PNG needs resvg: {install('plots')}"
    from resvg_py import svg_to_bytes

    first, second = (
        svg_to_bytes(svg_string=svg(text_svg(letter, 0, 10), 10, 10, "", alone=True))
        for letter in "ab"
    )
    if first == second:  # without a font, text is left out without a word
        return "PNG needs a font, and none is installed (on Debian: apt install fonts-dejavu-core)"
    return ""


TITLE = Words("The Transformer, figure by figure", "그림으로 보는 Transformer")
_LEAD = Words(
    "Every figure is computed, none is drawn by hand. The numbers of each are in a CSV file. "
    "Equations are those of “Attention Is All You Need” (Vaswani et al., 2017). In matrices "
    "blue is above zero, orange below, and the deeper the colour, the further from it.",
    "모든 그림은 손으로 그린 것이 아니라 계산한 것이며, 수는 그림마다 CSV로 있습니다. 식은 "
    "“Attention Is All You Need”(Vaswani 외, 2017)의 것입니다. 행렬에서 파란색은 0보다 큰 수, "
    "주황색은 0보다 작은 수이며, 색이 진할수록 절댓값이 큽니다.",
)


def book_html(
    figures: Sequence[Figure],
    *,
    about: Sequence[Words] = (),
    missing: Sequence[tuple[str, str]] = (),
    png: bool = True,
) -> str:
    """The page. ``about`` is said first; ``missing`` are figures left out, and why.

    Links lead to ``NAME.svg``, ``NAME.png`` (with ``png``) and the CSV files in the same folder.
    """
    contents = "\n".join(
        f'<li><a href="#{figure.name}">{_both(figure.title, "span")}</a></li>' for figure in figures
    )
    notices = "\n".join(_both(words, "p", "notice") for words in about)
    body = "\n".join(_section(figure, png) for figure in figures)
    whole = (
        "<main>\n<header>\n"
        '<p class="languages" hidden><button type="button" value="en" lang="en">English</button>'
        '<button type="button" value="ko" lang="ko">한국어</button></p>\n'
        f"{_both(TITLE, 'h1')}\n{_both(_LEAD, 'p', 'lead')}\n{notices}\n"
        f'<nav><ol class="contents">\n{contents}\n</ol></nav>\n</header>\n'
        f"{body}\n{_missing(missing)}</main>\n<script>{part('book.js')}</script>\n"
    )
    return page_html(TITLE.english, whole, styles=part("book.css"))


def _section(figure: Figure, png: bool) -> str:
    drawn = figure_svg(figure, alone=False)
    notes = "\n".join(_both(note, "p", "note") for note in figure.notes)
    files = [f"{figure.name}.svg", *([f"{figure.name}.png"] if png else []), *csv_files(figure)]
    links = " · ".join(f'<a href="{escape(name)}" download>{escape(name)}</a>' for name in files)
    looked_into = ""
    if figure.run:
        words = Words(
            f"Looks into the trained run “{figure.run}”.",
            f"사용한 모델: “{figure.run}”.",
        )
        looked_into = _both(words, "span") + " "
    return (
        f'<section id="{figure.name}">\n{_both(figure.title, "h2")}\n'
        f'<figure class="panel"><div class="scroll" tabindex="0">{drawn}</div>\n<figcaption>\n'
        f"{_both(figure.caption, 'p')}\n{notes}\n"
        f'<p class="from">{looked_into}{_both(figure.source, "cite")}</p>\n'
        f"<details><summary>{_both(Words('Files', '파일'), 'span')}</summary>"
        f'<p class="files">{links}</p></details>\n</figcaption></figure>\n</section>'
    )


def _missing(missing: Sequence[tuple[str, str]]) -> str:
    if not missing:
        return ""
    items = "\n".join(
        f"<li><code>{escape(name)}</code>: {escape(reason)}</li>" for name, reason in missing
    )
    heading = _both(Words("Left out", "빠진 그림"), "h2")
    return f"<section>\n{heading}\n<ul>\n{items}\n</ul>\n</section>\n"


def _both(words: Words, tag: str, kind: str = "") -> str:
    """An element twice, once for each language; a script or the style hides one."""
    of_kind = f' class="{kind}"' if kind else ""
    return "".join(
        f'<{tag} lang="{language}"{of_kind}>{escape(text)}</{tag}>'
        for language, text in (("en", words.english), ("ko", words.korean))
    )
