"""Heat maps and charts in matplotlib's axes, for figures as PNG; needs ``dragoman[plots]``.

Letters that no installed font has are drawn as boxes; SVG leaves that choice to the reader.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.errors import DragomanError
from dragoman.extras import install
from dragoman.pictures.attention import SHOWN_FROM, share
from dragoman.pictures.chart import compact_number, thinned
from dragoman.pictures.labels import visible
from dragoman.pictures.records import Chart, Heatmap
from dragoman.pictures.theme import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_FONTS = ("Noto Sans", "DejaVu Sans", "Noto Sans CJK KR", "Noto Sans KR", "Malgun Gothic")


@contextmanager
def drawing() -> Iterator[Figure]:
    """A figure of our own: no global state, no window, nothing of the user's style."""
    try:
        import matplotlib
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DragomanError(
            f"PNG needs matplotlib: {install('plots')}. SVG and HTML need nothing."
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
        if weight >= SHOWN_FROM:
            colour = LIGHT.raised if weight > 0.7 else LIGHT.ink if weight > 0.2 else LIGHT.muted
            axes.text(
                column, row, share(weight), color=colour, fontsize=7, ha="center", va="center"
            )


def draw_chart(axes: Axes, chart: Chart) -> None:
    """Some lines into axes."""
    from matplotlib.ticker import MaxNLocator

    axes.set_facecolor(LIGHT.paper)
    for place, one in enumerate(map(thinned, chart.series)):
        colour = LIGHT.series[place % len(LIGHT.series)]
        marker = "o" if chart.points or len(one.x) == 1 else None
        axes.plot(
            one.x,
            one.mean,
            color=colour,
            linewidth=1.3,
            label=visible(one.name),
            marker=marker,
            linestyle="none" if chart.points else ("-", "--", ":", "-.")[place % 4],
        )
        if one.low != one.high:
            axes.fill_between(one.x, one.low, one.high, color=colour, alpha=0.16, linewidth=0)
    if chart.marked_x is not None:
        axes.axvline(chart.marked_x, color=LIGHT.muted, linewidth=0.8, linestyle=":")
    if chart.log_x:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    elif chart.is_counted:
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
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
        _legend(axes)


_LEGEND = 0.14
"""Share of the height that a line of the legend takes."""
_LETTERS = 13
"""Letters of the legend to an inch."""


def _legend(axes: Axes) -> None:
    """Above all curves: the axis is made longer, so that no line of it lies on one."""
    names = axes.get_legend_handles_labels()[1]
    across = axes.bbox.width / axes.figure.dpi * _LETTERS  # that fit side by side
    columns = min(len(names), max(1, int(across / (max(map(len, names)) + 6))))
    lines = -(-len(names) // columns)
    low, high = axes.get_ylim()
    room = lines * _LEGEND / (1 - lines * _LEGEND)
    if axes.get_yscale() == "log":
        axes.set_ylim(low, high * (high / low) ** room)
    else:
        axes.set_ylim(low, high + (high - low) * room)
    axes.legend(
        loc="upper left", ncols=columns, frameon=False, labelcolor=LIGHT.muted, fontsize=8,
        borderaxespad=0.0, handlelength=1.6, columnspacing=1.2,
    )  # fmt: skip


def _plain_numbers(axis: Axis) -> None:
    """Powers of ten as numbers: matplotlib's own are formulas, which are switched off here."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: compact_number(value)))
    axis.set_minor_formatter(NullFormatter())
