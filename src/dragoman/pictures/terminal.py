"""Attention in a terminal. Colours only add: shade and number are in the text itself.

Die      sie      müde
░ 12     █ 83      ·      <- each cell: its shade and its percent, a dot below 5 %
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from dragoman.pictures.labels import visible
from dragoman.pictures.records import Heatmap, Hops
from dragoman.pictures.theme import LIGHT

_SHADES = "·░▒▓█"
_SHADE_FROM = (0.0, 0.05, 0.2, 0.45, 0.7)
_MAX_LABEL_WIDTH = 14
_GAP = 1


def shade(weight: float) -> str:
    """0.83 -> █. A dot below 5 %, then four steps: 5, 20, 45, 70 %."""
    return _SHADES[int(np.searchsorted(_SHADE_FROM, weight, side="right")) - 1]


def heatmap_text(heatmap: Heatmap, width: int = 100) -> Text:
    """A heat map as lines of text no wider than ``width``, to be printed by rich.

    ``.plain`` is the same without colours. Columns that do not fit side by side follow below, in
    bands that repeat the row labels.
    """
    weights = np.clip(np.nan_to_num(np.asarray(heatmap.weights, dtype=np.float64)), 0.0, 1.0)
    rows, columns = (
        [_fit(visible(label)) for label in side] for side in (heatmap.rows, heatmap.columns)
    )
    margin = max((cell_len(label) for label in rows), default=0) + 2
    out = Text()
    if heatmap.title:
        out.append(visible(heatmap.title) + "\n", style="dim")
    for number, band in enumerate(_bands(columns, max(width - margin, 8))):
        if number:
            out.append("\n")
        _append_band(out, rows, columns, weights, band, margin)
    return out


def rows_text(heatmap: Heatmap, width: int = 80) -> Text:
    """A heat map of many columns, a line of shades for each word, no wider than ``width``: columns
    that fall together are added."""
    margin = max((cell_len(visible(word)) for word in heatmap.rows), default=0) + 2
    count = max(8, min(width - margin, len(heatmap.columns)))
    out = Text()
    for word, row in zip(heatmap.rows, np.asarray(heatmap.weights, float), strict=True):
        shown = visible(word)
        out.append(shown + " " * (margin - cell_len(shown)))
        out.append("".join(shade(part.sum()) for part in np.array_split(row, count)) + "\n")
    return out


def hops_text(hops: Hops, width: int = 100) -> Text:
    """The two hops of a word as two rows: where it looked, and where that word looked."""
    target, source = hops.target[hops.word], hops.source[hops.through]
    heatmap = Heatmap(
        (f"{target} →", f"{source} →"), hops.source, np.stack([hops.first, hops.second])
    )
    out = heatmap_text(heatmap, width)
    named = ((target, hops.first_from), (source, hops.second_from))
    for word, origin in named:
        if origin:
            out.append(f"{visible(word)} → : {visible(origin)}\n", style="dim")
    return out


def _fit(label: str) -> str:
    if cell_len(label) <= _MAX_LABEL_WIDTH:
        return label
    return set_cell_size(label, _MAX_LABEL_WIDTH - 1).rstrip() + "…"


def _column_width(label: str) -> int:
    return max(cell_len(label), 4)


def _bands(columns: Sequence[str], room: int) -> list[range]:
    """Runs of columns that fit into ``room`` cells, at least one column each: as few as can be, and
    among those the ones whose widest is narrowest, so that no column is left alone at the end."""
    few = _fill_bands(columns, room)
    narrow = max(map(_column_width, columns), default=0) + _GAP
    while narrow < room:
        middle = (narrow + room) // 2
        if len(_fill_bands(columns, middle)) == len(few):
            few, room = _fill_bands(columns, middle), middle
        else:
            narrow = middle + 1
    return few


def _fill_bands(columns: Sequence[str], room: int) -> list[range]:
    """Each band as full as it can be."""
    bands: list[range] = []
    start, used = 0, 0
    for i, label in enumerate(columns):
        needed = _column_width(label) + _GAP
        if i > start and used + needed > room:
            bands.append(range(start, i))
            start, used = i, 0
        used += needed
    return [*bands, range(start, len(columns))]


def _append_band(
    out: Text,
    rows: Sequence[str],
    columns: Sequence[str],
    weights: np.ndarray,
    band: range,
    margin: int,
) -> None:
    out.append(" " * margin)
    for column in band:
        _append_cell(out, columns[column], _column_width(columns[column]), Style(bold=True))
    out.append("\n")
    for row, label in enumerate(rows):
        out.append(" " * (margin - 2 - cell_len(label)) + label + "  ")
        for column in band:
            weight = float(weights[row, column])
            text = shade(weight)
            if weight >= _SHADE_FROM[1]:
                text += f"{weight * 100:3.0f}"
            _append_cell(out, text, _column_width(columns[column]), _style(weight))
        out.append("\n")


def _append_cell(out: Text, text: str, width: int, style: Style) -> None:
    out.append(text + " " * (width - cell_len(text)), style=style)
    out.append(" " * _GAP)


def _style(weight: float) -> Style:
    """The light theme's ink mixed into its paper; numbers turn light where the ink is strong."""
    if weight < _SHADE_FROM[1]:
        return Style(dim=True)
    strength = 0.15 + 0.85 * weight
    paper, ink = _parts(LIGHT.raised), _parts(LIGHT.series[0])
    mixed = "".join(f"{round(p + (i - p) * strength):02x}" for p, i in zip(paper, ink, strict=True))
    return Style(color=LIGHT.raised if strength > 0.55 else LIGHT.ink, bgcolor=f"#{mixed}")


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
