"""A whole figure as PNG, its panels where the SVG has them.

Needs matplotlib (``dragoman[plots]``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dragoman.pictures.attention import short_label
from dragoman.pictures.figure import Figure, PanelBox, lay_out
from dragoman.pictures.labels import visible
from dragoman.pictures.matrix import Array, MatrixPicture, short_number
from dragoman.pictures.png import draw_heatmap, drawing
from dragoman.pictures.records import Heatmap
from dragoman.pictures.theme import LIGHT

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

_PIXELS_PER_INCH = 100


def figure_png(figure: Figure, path: Path, *, dots_per_inch: int = 130) -> None:
    """Write a figure. Raises DragomanError where matplotlib is not installed."""
    laid = lay_out([panel.svg() for panel in figure.panels])
    with drawing() as page:
        page.set_size_inches(laid.width / _PIXELS_PER_INCH, laid.height / _PIXELS_PER_INCH)
        for panel, box in zip(figure.panels, laid.boxes, strict=True):
            panel.paint(page, box)
        page.savefig(path, dpi=dots_per_inch, format="png")


def axes_in(
    page: matplotlib.figure.Figure,
    box: PanelBox,
    left: float,
    top: float,
    right: float,
    bottom: float,
) -> Axes:
    """Axes inside a box of the page, margins in pixels."""
    width, height = page.get_size_inches() * _PIXELS_PER_INCH
    inner = (
        (box.left + left) / width,
        1 - (box.top + box.height - bottom) / height,
        max(box.width - left - right, 1) / width,
        max(box.height - top - bottom, 1) / height,
    )
    return page.add_axes(inner)


def draw_words(axes: Axes, heatmap: Heatmap, title_at: float) -> None:
    """A heat map with its words; ``title_at``, in widths of ``axes``, is where its title begins."""
    rows, columns = (
        [short_label(visible(label)) for label in side] for side in (heatmap.rows, heatmap.columns)
    )
    draw_heatmap(axes, heatmap)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.set_title(visible(heatmap.title), loc="left", x=title_at, fontsize=9, color=LIGHT.muted)


def draw_matrix(axes: Axes, matrix: MatrixPicture) -> None:
    """Any matrix: positive numbers in one ink, negative ones in the other."""
    depths, (count, across) = np.ma.masked_invalid(matrix.depths), matrix.values.shape
    axes.imshow(depths, cmap=_inks(), vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    if matrix.columns:
        axes.set_xticks(range(across), [short_label(visible(column)) for column in matrix.columns])
        if matrix.slanted:
            for label in axes.get_xticklabels():
                label.set(rotation=45, ha="left", rotation_mode="anchor")
    if matrix.rows and matrix.cell[1] >= 9:
        axes.set_yticks(range(count), [short_label(visible(row)) for row in matrix.rows])
    axes.set_ylabel(visible(matrix.down), fontsize=8)
    axes.set_xlabel(matrix.legend, fontsize=8, loc="left")
    axes.set_title(visible(matrix.title), loc="left", fontsize=9)
    _no_frame(axes)
    if matrix.cell[0] < 30:
        return
    for row, column in np.ndindex(*matrix.values.shape):
        value = float(matrix.values[row, column])
        finite = bool(np.isfinite(value))
        strong = finite and abs(float(depths[row, column])) > 0.6
        colour = LIGHT.raised if strong else LIGHT.ink if finite else LIGHT.muted
        text = short_number(value) if finite else matrix.absent
        axes.text(column, row, text, color=colour, fontsize=7, ha="center", va="center")


def draw_tiles(
    axes: Axes, weights: Array, title: str, title_at: float, down: str, across: str
) -> None:
    """(L, H, T, S) as a grid of small pictures, whose lines are called ``down`` and ``across``;
    ``title_at`` as in ``draw_words``."""
    layers, heads, rows, columns = weights.shape
    gap = max(1, columns // 12)
    whole = np.full((layers * (rows + gap) - gap, heads * (columns + gap) - gap), np.nan)
    for layer, head in np.ndindex(layers, heads):
        y, x = layer * (rows + gap), head * (columns + gap)
        whole[y : y + rows, x : x + columns] = weights[layer, head]
    shown = np.ma.masked_invalid(whole)
    axes.imshow(shown, cmap=_inks(), vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    names = [f"{across} {head + 1}" for head in range(heads)]
    axes.set_xticks([head * (columns + gap) + columns / 2 for head in range(heads)], names)
    names = [f"{down} {layer + 1}" for layer in range(layers)]
    axes.set_yticks([layer * (rows + gap) + rows / 2 for layer in range(layers)], names)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.set_title(visible(title), loc="left", x=title_at, fontsize=9)
    _no_frame(axes)


def draw_table(
    axes: Axes,
    title: str,
    lines: Sequence[Sequence[str]],
    widths: Sequence[float],
    numeric: Sequence[bool],
    box: PanelBox,
) -> None:
    """A table of text, its first line the header, in the pixels of its box."""
    axes.set_xlim(0, box.width)
    axes.set_ylim(box.height, 0)
    axes.axis("off")
    axes.text(4, 15, visible(title), fontsize=9)
    for number, line in enumerate(lines):
        x, y = 4.0, 44 + 21.0 * number
        for text, width, right in zip(line, widths, numeric, strict=True):
            at, side = (x + width - 22, "right") if right else (x, "left")
            colour = LIGHT.muted if number == 0 else LIGHT.ink
            axes.text(at, y, visible(text), fontsize=8, color=colour, ha=side)
            x += width
        axes.plot([4, sum(widths) - 10], [y + 6.5, y + 6.5], color=LIGHT.rule, linewidth=0.8)


def _inks() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    colours = [LIGHT.series[1], LIGHT.raised, LIGHT.series[0]]
    return LinearSegmentedColormap.from_list("two inks", colours)


def _no_frame(axes: Axes) -> None:
    for side in axes.spines.values():
        side.set_visible(False)
