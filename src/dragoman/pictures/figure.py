"""A figure: computed numbers, the panels that draw them, and a caption in two languages.

The code of a figure fills in ``Figure``; it becomes SVG, PNG, CSV, or a part of the page of all
figures. Panels are drawn by ``panels.py`` and ``matrix.py``.

PNG is the figure's own SVG, drawn by matplotlib (``dragoman[plots]``). What panels draw is read,
not all of SVG: rectangles, circles, paths, texts, and grids of ink behind masks, in the classes of
``theme.py``. Letters that no installed font has are drawn as boxes; SVG leaves that choice to the
reader.
"""

from __future__ import annotations

import base64
import csv
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from xml.etree import ElementTree

import numpy as np

from dragoman.base.atomic import replacing_file, write_text
from dragoman.base.errors import needing
from dragoman.pictures.labels import escape
from dragoman.pictures.theme import FONT_SIZE, LIGHT, classes, svg

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch


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


_PIXELS_PER_INCH = 100
_DOTS_PER_INCH = 130
_POINT = 72 / _PIXELS_PER_INCH
"""The size of a pixel in points."""
_FONTS = ("Noto Sans", "DejaVu Sans", "Noto Sans CJK KR", "Noto Sans KR", "Malgun Gothic")
_CLASSES = classes(LIGHT) | {"line": {"fill": "none"}, "small": {"font-size": "11px"}}
"""The style of each class, as in ``theme.SVG_STYLE``."""
_PLAIN = {"fill": LIGHT.ink, "stroke": "none", "font-size": f"{FONT_SIZE}px"}


def figure_png(figure: Figure, path: Path) -> None:
    """Write a figure. Raises DragomanError where matplotlib is not installed."""
    with drawing() as page:
        paint(figure_svg(figure, alone=False), page)
        page.savefig(path, dpi=_DOTS_PER_INCH, format="png")


def write_figure(folder: Path, figure: Figure, ending: str = "") -> list[Path]:
    """Write the picture with this ``ending`` (.svg or .png), and its numbers as CSV. Without an
    ending: SVG, and also PNG if matplotlib is installed. Return the files.

    Errors: ``FileError`` when the disk is full; ``DragomanError`` for PNG without matplotlib.
    """
    endings = [ending] if ending else [".svg", *([".png"] if find_spec("matplotlib") else [])]
    pictures = [folder / f"{figure.name}{kind}" for kind in endings]
    for path in pictures:
        if path.suffix == ".svg":
            write_text(path, figure_svg(figure))
        else:
            with replacing_file(path) as temporary:
                figure_png(figure, temporary)
    files = csv_files(figure)
    for name, content in files.items():
        write_text(folder / name, content)
    return [*pictures, *(folder / name for name in files)]


@contextmanager
def drawing() -> Iterator[matplotlib.figure.Figure]:
    """A figure of our own: no global state, no window, nothing of the user's style."""
    with needing("plots", "PNG needs matplotlib", then=". SVG and HTML need nothing."):
        import matplotlib
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    installed = {font.name for font in font_manager.fontManager.ttflist}
    # matplotlib's types name every key of its settings literally.
    settings: dict[Any, Any] = {
        **matplotlib.rcParamsDefault,
        "backend": "agg",
        "font.family": [name for name in _FONTS if name in installed],
        "lines.scale_dashes": False,
        "text.usetex": False,
        "text.parse_math": False,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield Figure(facecolor=LIGHT.paper)


def paint(svg: str, page: matplotlib.figure.Figure) -> None:
    """Draw an ``<svg>`` element on a page, which gets its size."""
    root = ElementTree.fromstring(svg)
    width, height = _numbers(root, "width", "height")
    page.set_size_inches(width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH)
    axes = page.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    masks = {element.get("id"): element[0] for element in root.iter() if _kind(element) == "mask"}
    for order, (element, x, y, style) in enumerate(_elements(root, 0, 0, _PLAIN)):
        if _kind(element) == "text":
            _write(axes, element, x, y, style, order)
        elif mask := element.get("mask"):
            _ink(axes, element, x, y, style, order, masks[mask[len("url(#") : -1]])
        else:
            shape = _shape(element, x, y)
            shape.set(**_pen(style), zorder=order)
            axes.add_patch(shape)


def _kind(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _numbers(element: ElementTree.Element, *names: str) -> list[float]:
    """Some attributes; 0 for one that is not there."""
    return [float(element.get(name, 0)) for name in names]


def _elements(
    parent: ElementTree.Element, x: float, y: float, around: Mapping[str, str]
) -> Iterator[tuple[ElementTree.Element, float, float, Mapping[str, str]]]:
    """Yields what is drawn, in its order: the element, its origin, and its style."""
    for element in parent:
        style = dict(around)
        for name in element.get("class", "").split():
            style |= _CLASSES.get(name, {})
        style |= element.attrib
        style |= dict(part.split(":") for part in element.get("style", "").split(";") if part)
        if _kind(element) in ("svg", "g"):
            left, top = _numbers(element, "x", "y")
            yield from _elements(element, x + left, y + top, style)
        elif _kind(element) in ("rect", "circle", "path", "text"):
            yield element, x, y, style


def _pen(style: Mapping[str, str]) -> dict[str, Any]:
    """The style of a shape as arguments of matplotlib."""
    dashes = [float(length) * _POINT for length in style.get("stroke-dasharray", "").split()]
    width = float(style.get("stroke-width", "1").removesuffix("px")) * _POINT
    return {
        "facecolor": (style["fill"], float(style.get("fill-opacity", 1))),
        "edgecolor": (style["stroke"], float(style.get("stroke-opacity", 1))),
        "linewidth": width if style["stroke"] != "none" else 0.0,
        "linestyle": (0, dashes) if dashes else "solid",
        "joinstyle": style.get("stroke-linejoin", "miter"),
        "capstyle": style.get("stroke-linecap", "butt"),
    }


def _shape(element: ElementTree.Element, x: float, y: float) -> Patch:
    from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Rectangle
    from matplotlib.path import Path as Outline

    if _kind(element) == "circle":
        across, down, radius = _numbers(element, "cx", "cy", "r")
        return Circle((across + x, down + y), radius)
    if _kind(element) == "path":
        points, codes = _outline(element.get("d", ""))
        return PathPatch(Outline(np.add(points, (x, y)), codes))
    left, top, width, height, corner = _numbers(element, "x", "y", "width", "height", "rx")
    if not corner:
        return Rectangle((left + x, top + y), width, height)
    style = f"round,pad=0,rounding_size={corner}"
    return FancyBboxPatch((left + x, top + y), width, height, style)


def _outline(written: str) -> tuple[list[tuple[float, float]], list[int]]:
    """A path of the commands M, L, H, V, C, Z, h and l -> its points, and matplotlib's codes."""
    codes_of = {"M": 1, "C": 4, "Z": 79}
    points, codes = list[tuple[float, float]](), list[int]()
    x = y = 0.0
    for command, arguments in re.findall(r"([MLHVCZhl])([^MLHVCZhl]*)", written):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", arguments)]
        if command == "Z":
            numbers = list(points[0])
        elif command in "Hh":
            numbers = [numbers[0] + (x if command == "h" else 0.0), y]
        elif command == "V":
            numbers = [x, numbers[0]]
        elif command == "l":
            numbers = [numbers[0] + x, numbers[1] + y]
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        points += pairs
        codes += [codes_of.get(command, 2)] * len(pairs)
        x, y = pairs[-1]
    return points, codes


def _ink(
    axes: Axes, element: ElementTree.Element, x: float, y: float, style: Mapping[str, str],
    order: int, mask: ElementTree.Element,
) -> None:  # fmt: skip
    """A rectangle that is as opaque as the picture ``mask`` is light."""
    from matplotlib.colors import to_rgb
    from matplotlib.image import imread

    left, top, width, height = _numbers(element, "x", "y", "width", "height")
    data = mask.get("href", "").partition("base64,")[2]
    strengths = imread(io.BytesIO(base64.b64decode(data)), format="png")  # (R, C)
    ink = np.broadcast_to(to_rgb(style["fill"]), (*strengths.shape, 3))
    axes.imshow(
        np.dstack([ink, strengths]), extent=(left + x, left + x + width, top + y + height, top + y),
        aspect="auto", interpolation="nearest", zorder=order,
    )  # fmt: skip


def _write(
    axes: Axes, element: ElementTree.Element, x: float, y: float, style: Mapping[str, str],
    order: int,
) -> None:  # fmt: skip
    from matplotlib.patheffects import withStroke

    left, top = _numbers(element, "x", "y")
    turned = element.get("transform", "")
    if moved := re.match(r"translate\((\S+) (\S+)\)", turned):
        left, top = float(moved[1]), float(moved[2])
    angle = re.search(r"rotate\((-?\d+)", turned)
    stroke = withStroke(linewidth=4 * _POINT, foreground=style["stroke"])
    axes.text(
        left + x, top + y, element.text or "", color=style["fill"],
        fontsize=float(style["font-size"].removesuffix("px")) * _POINT,
        ha={"middle": "center", "end": "right"}.get(style.get("text-anchor", ""), "left"),
        va="baseline", rotation=-float(angle[1]) if angle else 0.0, rotation_mode="anchor",
        path_effects=[stroke] if style["stroke"] != "none" else None, zorder=order,
    )  # fmt: skip
