"""The same pictures as PNG, for slides and papers; needs matplotlib (``dragoman[plots]``).

Letters that no installed font has are drawn as boxes; SVG leaves that choice to the reader.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.errors import DragomanError
from dragoman.pictures.attention import percent, shortened
from dragoman.pictures.chart import figure as figure_of
from dragoman.pictures.chart import thinned
from dragoman.pictures.labels import drawn_width, visible
from dragoman.pictures.records import Chart, Heatmap
from dragoman.pictures.theme import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_FONTS = ("Noto Sans", "DejaVu Sans", "Noto Sans CJK KR", "Noto Sans KR", "Malgun Gothic")
_PIXELS_PER_INCH = 100


def heatmap_png(heatmap: Heatmap, path: Path, *, dots_per_inch: int = 200) -> None:
    """Write a heat map, drawn as ``heatmap_svg`` draws it.

    Raises DragomanError where matplotlib is not installed.
    """
    rows, columns = (
        [shortened(visible(label)) for label in side] for side in (heatmap.rows, heatmap.columns)
    )
    cell = 0.34 if max(len(rows), len(columns)) <= 16 else 0.2
    left = max((drawn_width(label, 13) for label in rows), default=0) / _PIXELS_PER_INCH + 0.2
    above = max((drawn_width(label, 13) for label in columns), default=0) / _PIXELS_PER_INCH * 0.72
    title = 0.3 if heatmap.title else 0.0
    width = left + cell * len(columns) + max(above, 0.1)
    height = title + above + 0.2 + cell * len(rows) + 0.1
    with drawing() as figure:
        figure.set_size_inches(width, height)
        axes = figure.add_axes(
            (left / width, 0.1 / height, cell * len(columns) / width, cell * len(rows) / height)
        )
        draw_heatmap(axes, heatmap)
        axes.set_xticks(
            range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor"
        )
        axes.set_yticks(range(len(rows)), rows)
        if heatmap.title:
            place = (0.04 / width, 1 - 0.2 / height)
            figure.text(*place, visible(heatmap.title), color=LIGHT.muted, fontsize=9)
        figure.savefig(path, dpi=dots_per_inch, format="png")


def chart_png(charts: Sequence[Chart], path: Path, *, dots_per_inch: int = 150) -> None:
    """Write charts side by side, two in a row.

    Raises DragomanError where matplotlib is not installed.
    """
    across = min(2, len(charts))
    down = math.ceil(len(charts) / 2)
    with drawing() as figure:
        figure.set_size_inches(5 * across, 3 * down)
        figure.set_layout_engine("constrained")
        for place, chart in enumerate(charts):
            draw_chart(figure.add_subplot(down, across, place + 1), chart)
        figure.savefig(path, dpi=dots_per_inch, format="png")


@contextmanager
def drawing() -> Iterator[Figure]:
    """A figure of our own: no global state, no window, nothing of the user's style."""
    try:
        import matplotlib
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DragomanError(
            "PNG needs matplotlib: pip install matplotlib. SVG and HTML need nothing."
        ) from error
    installed = {font.name for font in font_manager.fontManager.ttflist}
    # matplotlib's types name every key of its settings literally.
    settings: dict[Any, Any] = {
        **matplotlib.rcParamsDefault,
        "backend": "agg",
        "font.family": [name for name in _FONTS if name in installed],
        "font.size": 9,
        "svg.fonttype": "none",
        "text.usetex": False,
        "text.parse_math": False,
        "text.color": LIGHT.ink,
        "axes.edgecolor": LIGHT.rule,
        "axes.titlecolor": LIGHT.ink,
        "axes.labelcolor": LIGHT.muted,
        "xtick.color": LIGHT.muted,
        "ytick.color": LIGHT.muted,
    }
    with (
        matplotlib.rc_context(settings),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield Figure(facecolor=LIGHT.paper)


def draw_heatmap(axes: Axes, heatmap: Heatmap) -> None:
    """A heat map into axes, its words left out: cells, and numbers where there is room."""
    from matplotlib.colors import LinearSegmentedColormap

    weights = np.clip(np.nan_to_num(np.asarray(heatmap.weights, dtype=np.float64)), 0.0, 1.0)
    inks = LinearSegmentedColormap.from_list("ink", [LIGHT.raised, LIGHT.series[0]])
    axes.imshow(weights, cmap=inks, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    axes.set_xticks(np.arange(weights.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(weights.shape[0] + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=LIGHT.paper, linewidth=1.2)
    axes.tick_params(which="both", length=0, labeltop=True, labelbottom=False)
    axes.tick_params(which="major", labelcolor=LIGHT.ink)
    for side in axes.spines.values():
        side.set_visible(False)
    if weights.shape[1] > 16:
        return
    for row, column in np.ndindex(*weights.shape):
        weight = float(weights[row, column])
        if weight >= 0.05:
            colour = LIGHT.raised if weight > 0.7 else LIGHT.ink if weight > 0.2 else LIGHT.muted
            axes.text(
                column, row, percent(weight), color=colour, fontsize=7, ha="center", va="center"
            )


def draw_chart(axes: Axes, chart: Chart) -> None:
    """Some lines into axes."""
    axes.set_facecolor(LIGHT.paper)
    for place, one in enumerate(map(thinned, chart.series)):
        colour = LIGHT.series[place % len(LIGHT.series)]
        marker = "o" if len(one.x) == 1 else None
        axes.plot(
            one.x,
            one.mean,
            color=colour,
            linewidth=1.3,
            label=visible(one.name),
            marker=marker,
            linestyle=("-", "--", ":", "-.")[place % 4],
        )
        if one.low != one.high:
            axes.fill_between(one.x, one.low, one.high, color=colour, alpha=0.16, linewidth=0)
    if chart.marked_x is not None:
        axes.axvline(chart.marked_x, color=LIGHT.muted, linewidth=0.8, linestyle=":")
    if chart.log_x:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    if chart.log_y:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis)
    axes.set_title(visible(chart.title), loc="left", fontsize=10)
    axes.set_xlabel(visible(chart.x_label))
    # Above the axis, where long numbers beside it cannot push it off the picture.
    axes.set_title(visible(chart.y_label), loc="right", fontsize=8, color=LIGHT.muted)
    if chart.from_zero:
        axes.set_ylim(bottom=0.0)
    axes.grid(axis="y", color=LIGHT.rule, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if any(one.name for one in chart.series):
        axes.legend(frameon=False, labelcolor=LIGHT.muted, fontsize=8)


def _plain_numbers(axis: Axis) -> None:
    """Powers of ten as numbers: matplotlib's own are formulas, which are switched off here."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: figure_of(value)))
    axis.set_minor_formatter(NullFormatter())
