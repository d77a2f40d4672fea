"""Values with their intervals, a row each, over one axis; published values beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.pictures.chart import Scale, compact_number
from dragoman.pictures.labels import drawn_width, escape, visible
from dragoman.pictures.theme import svg, text_svg

_ROW, _TOP, _BOTTOM, _RIGHT, _ACROSS = 20.0, 56.0, 36.0, 16.0, 330.0


@dataclass(frozen=True)
class IntervalRow:
    """One row."""

    label: str
    value: float | None
    """None: not measured."""
    half: float | None = None
    """Half the width of its interval; None: not known."""
    published: float | None = None
    """What others print."""


@dataclass(frozen=True)
class Intervals:
    """A picture of such rows: dots with whiskers, published values as hollow diamonds."""

    title: str
    x_label: str
    rows: Sequence[IntervalRow]
    marked: float = 0.0
    """A place to point out: no difference."""

    def svg(self) -> str:
        left = self._left()
        width = left + _ACROSS + _RIGHT
        height = _TOP + _ROW * len(self.rows) + _BOTTOM
        across = Scale.over(self._ends(), left, left + _ACROSS, log=False)
        bottom = height - _BOTTOM
        parts = [
            f'<text class="ink" x="4" y="16">{escape(self.title)}</text>',
            '<circle class="f0" cx="9" cy="33" r="4"/>',
            '<text class="small muted" x="18" y="37">here, with its 95 % interval</text>',
            f'{_diamond(205, 33)}<text class="small muted" x="214" y="37">the paper</text>',
        ]
        for tick in across.ticks():
            x = across(tick)
            parts.append(
                f'<path class="rule" d="M{x:.1f} {_TOP - 6:.1f}V{bottom:.1f}"/>'
                + text_svg(compact_number(round(tick, 12)), x, bottom + 14, "small muted", "middle")
            )
        x = across(self.marked)
        parts.append(f'<path class="axis" d="M{x:.1f} {_TOP - 6:.1f}V{bottom:.1f}"/>')
        for place, row in enumerate(self.rows):
            y = _TOP + _ROW * (place + 0.5)
            parts.append(text_svg(row.label, left - 10, y + 4, "small", "end"))
            if row.published is not None:
                parts.append(_diamond(across(row.published), y))
            if row.value is None:
                end = left + _ACROSS
                parts.append(text_svg("not measured", end, y + 4, "small muted", "end"))
                continue
            if row.half is not None:
                begin = max(across(row.value - row.half), left)
                end = min(across(row.value + row.half), left + _ACROSS)
                whisker = f"M{begin:.1f} {y:.1f}H{end:.1f}"
                parts.append(f'<path class="line s0" stroke-width="1.6" d="{whisker}"/>')
            parts.append(
                f'<circle class="f0" cx="{across(row.value):.1f}" cy="{y:.1f}" r="4">'
                f"<title>{escape(_row_text(row))}</title></circle>"
            )
        middle = left + _ACROSS / 2
        parts.append(text_svg(self.x_label, middle, height - 6, "small muted", "middle"))
        spoken = "; ".join(_row_text(row) for row in self.rows)
        return svg("".join(parts), width, height, escape(f"{self.title}: {spoken}"), alone=False)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "intervals", **asdict(self)}

    def _left(self) -> float:
        return max((drawn_width(visible(row.label), 11) for row in self.rows), default=40.0) + 16

    def _ends(self) -> list[float]:
        """What lies on its axis: all points, and whiskers within reason, so that one unsure row
        does not press the others together."""
        points = [self.marked]
        for row in self.rows:
            points += [value for value in (row.value, row.published) if value is not None]
        reach = (max(points) - min(points)) or 1.0
        ends = list(points)
        for row in self.rows:
            if row.value is not None and row.half is not None:
                half = min(row.half, reach)
                ends += [row.value - half, row.value + half]
        return ends


def _diamond(x: float, y: float) -> str:
    return (
        f'<path class="line s1" stroke-width="1.4" d="M{x - 5:.1f} {y:.1f}l5 -5l5 5l-5 5Z">'
        "<title>the paper</title></path>"
    )


def _row_text(row: IntervalRow) -> str:
    if row.value is None:
        return f"{row.label} not measured"
    half = "" if row.half is None else f" ± {compact_number(row.half)}"
    published = "" if row.published is None else f", paper {compact_number(row.published)}"
    return f"{row.label} {compact_number(row.value)}{half}{published}"
