"""Lines over one axis as SVG, made by hand: a chart is a few kilobytes and needs no library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.pictures.labels import escape, text_width
from dragoman.pictures.records import Chart, Series
from dragoman.pictures.theme import svg, text_svg

_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 54.0, 34.0
"""The margins around the axes, if the names of the lines need one row."""
_ROW = 16.0
"""The height of each further row of names."""
_MAX_STRETCHES = 150
# A second way, besides colour, to tell lines apart.
_DASHES = ("", "6 3", "2 3", "9 3 2 3")


@dataclass(frozen=True)
class Band:
    """A series cut into stretches: where each lies, its mean, and how far its points reach."""

    name: str
    x: list[float]
    low: list[float]
    mean: list[float]
    high: list[float]


def thin(series: Series, most: int = _MAX_STRETCHES) -> Band:
    """At most ``most`` stretches; a short series keeps each point as a stretch of its own.

    Points that are not finite are left out, so a skipped update draws no line to zero.
    """
    points = [
        (float(x), float(y))
        for x, y in zip(series.x, series.y, strict=True)
        if math.isfinite(x) and math.isfinite(y)
    ]
    length = max(1, math.ceil(len(points) / most))
    band = Band(series.name, [], [], [], [])
    for start in range(0, len(points), length):
        stretch = points[start : start + length]
        heights = [y for _, y in stretch]
        band.x.append(sum(x for x, _ in stretch) / len(stretch))
        band.low.append(min(heights))
        band.mean.append(sum(heights) / len(heights))
        band.high.append(max(heights))
    return band


def chart_svg(chart: Chart, width: float = 420, height: float = 240, *, last: bool = True) -> str:
    """Some lines over one axis -> SVG text. Its style is brought by the page.

    Each line names itself above the axis, with its last value unless ``last=False``: what a curve
    of training has come to, but nothing in a formula. Pointing at a line says its name. A long
    series is drawn as its mean inside the band that its points fill. The picture is higher by a row
    of text for each row of names behind the first.
    """
    series = [thin(line) for line in chart.series]
    series = [line for line in series if line.x and (not chart.log_y or min(line.low) > 0)]
    parts = [f'<text class="ink" x="4" y="16">{escape(chart.title)}</text>']
    if not series:
        parts.append(text_svg("nothing recorded", 4, height / 2, "small muted"))
        return svg("".join(parts), width, height, escape(chart.title), alone=False)
    legend, rows = _legend(series, width, last=last and not chart.points, points=chart.points)
    more = _ROW * (rows - 1)
    top, height = _TOP + more, height + more
    every_x = [x for line in series for x in line.x]
    across = Scale.over(
        every_x, _LEFT, width - _RIGHT, log=chart.log_x, tight=True, counted=chart.is_counted
    )
    heights = [y for line in series for y in (*line.low, *line.high)]
    if chart.from_zero:
        heights.append(0.0)
    upward = Scale.over(heights, height - _BOTTOM, top, log=chart.log_y)
    parts += _grid(chart, across, upward, width, height)
    if chart.marked_x is not None:
        parts += _mark(chart, across, top, height)
    for i, line in enumerate(series):
        draw = _points if chart.points else _curve
        parts.append(draw(line, i, across, upward))
    parts.append(legend)
    return svg("".join(parts), width, height, escape(_describe(chart, series)), alone=False)


@dataclass(frozen=True)
class Scale:
    """Numbers to pixels, from round number to round number."""

    low: float
    high: float
    begin: float
    end: float
    log: bool
    step: float

    @classmethod
    def over(
        cls,
        values: Sequence[float],
        begin: float,
        end: float,
        *,
        log: bool,
        tight: bool = False,
        counted: bool = False,
    ) -> Scale:
        """``tight`` ends where the values end, not at the next round number. ``counted``: nothing
        lies between two whole numbers, so no number stands there."""
        low, high = min(values), max(values)
        if log:
            low, high = math.log10(low), math.log10(high)
            if high - low < 0.3:
                low, high = low - 0.15, high + 0.15
            return cls(low, high, begin, end, True, 1.0)
        if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
            room = abs(high) * 0.1 or 1.0
            # A flat line of counts or scores must not suggest negative ones.
            low, high = (low - room if low else 0.0), high + room
        step = _round_step((high - low) / 4, counted)
        low_tick = math.floor(low / step + 1e-9) * step
        high_tick = high if tight else max(math.ceil(high / step - 1e-9) * step, high)
        return cls(low_tick, high_tick, begin, end, False, step)

    def __call__(self, value: float) -> float:
        at = math.log10(value) if self.log else value
        return self.begin + (at - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        if not self.log:
            count = math.floor((self.high - self.low) / self.step + 1e-6)
            return [self.low + i * self.step for i in range(count + 1)]
        decades = range(math.floor(self.low), math.ceil(self.high) + 1)
        fine = (1, 2, 5) if self.high - self.low < 2 else (1,)
        ticks = [m * 10.0**d for d in decades for m in fine]
        return [t for t in ticks if self.low - 1e-9 <= math.log10(t) <= self.high + 1e-9]


def _round_step(rough: float, whole: bool) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten; the next ``whole`` one of them."""
    rough = max(rough, 1.0) if whole else rough
    power = 10.0 ** math.floor(math.log10(rough))
    steps = [m * power for m in (1, 2, 2.5, 5, 10) if not whole or (m * power).is_integer()]
    return next(step for step in steps if step >= rough * (1 - 1e-9))


def compact_number(value: float) -> str:
    """A number in the fewest signs that keep four digits: 1.23e-3, 3.214, 12k, 1.5M."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.4g}M"
    if size >= 1e4:
        return f"{value / 1e3:.4g}k"
    if size and size < 0.01:
        mantissa, exponent = f"{value:.3e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.4g}"


def _grid(chart: Chart, across: Scale, upward: Scale, width: float, height: float) -> list[str]:
    parts = []
    for tick in upward.ticks():
        y = upward(tick)
        parts.append(
            f'<path class="rule" d="M{_LEFT:.1f} {y:.1f}H{width - _RIGHT:.1f}"/>'
            + text_svg(compact_number(round(tick, 12)), _LEFT - 7, y + 4, "small muted", "end")
        )
    bottom = height - _BOTTOM
    for tick in across.ticks():
        x = across(tick)
        anchor = "end" if x > width - _RIGHT - 6 else "middle"
        number = compact_number(round(tick, 12))
        parts.append(text_svg(number, x, bottom + 16, "small muted", anchor))
    middle = (width - _RIGHT + _LEFT) / 2
    parts.append(text_svg(chart.x_label, middle, height - 4, "small muted", "middle"))
    if chart.y_label:
        parts.append(text_svg(chart.y_label, width - _RIGHT, 16, "small muted", "end"))
    return parts


def _mark(chart: Chart, across: Scale, top: float, height: float) -> list[str]:
    assert chart.marked_x is not None
    # Drawn inside the axes, be it where it may.
    x = min(max(across(chart.marked_x), across.begin), across.end)
    line = f"M{x:.1f} {top:.1f}V{height - _BOTTOM:.1f}"
    return [
        f'<path class="axis" d="{line}" stroke-dasharray="2 3"/>',
        text_svg(chart.marked_as, x, top - 5, "small halo muted", "middle"),
    ]


def _curve(band: Band, place: int, across: Scale, upward: Scale) -> str:
    ink = place % 4
    dash = _dash(place)
    title = f"<title>{escape(band.name)}</title>"

    def path(heights: Sequence[float]) -> list[str]:
        return [f"{across(x):.1f} {upward(y):.1f}" for x, y in zip(band.x, heights, strict=True)]

    points = path(band.mean)
    if len(points) == 1:
        x, y = points[0].split()
        return f'<circle class="f{ink}" cx="{x}" cy="{y}" r="3">{title}</circle>'
    filled = ""
    if band.low != band.high:
        outline = "L".join([*path(band.high), *reversed(path(band.low))])
        filled = f'<path class="f{ink}" fill-opacity="0.16" d="M{outline}Z"/>'
    return (
        f'{filled}<path class="line s{ink}" d="M{"L".join(points)}" stroke-width="1.6"'
        f' stroke-linejoin="round"{dash}>{title}</path>'
    )


def _points(band: Band, place: int, across: Scale, upward: Scale) -> str:
    ink = place % 4
    return "".join(
        f'<circle class="f{ink}" cx="{across(x):.1f}" cy="{upward(y):.1f}" r="4">'
        f"<title>{escape(band.name)}: {compact_number(x)}, {compact_number(y)}</title></circle>"
        for x, y in zip(band.x, band.mean, strict=True)
    )


def _dash(place: int) -> str:
    """No two of sixteen lines have both the colour and the dashes of another."""
    dashes = _DASHES[(place + place // 4) % 4]
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _legend(
    series: Sequence[Band], width: float, *, last: bool, points: bool = False
) -> tuple[str, int]:
    """Names under the title, with their last values if wanted -> their SVG, and how many rows."""
    parts, x, row = [], 4.0, 0
    for i, line in enumerate(series):
        ink = i % 4
        text = f"{line.name} {compact_number(line.mean[-1])}".strip() if last else line.name
        if not text:
            continue
        wide = 18 + text_width(text, 11)
        if x > 4.0 and x + wide > width:
            x, row = 4.0, row + 1
        y = 30 + _ROW * row
        mark = f'<path class="line s{ink}" d="M{x:.1f} {y:.0f}h14" stroke-width="2"{_dash(i)}/>'
        if points:
            mark = f'<circle class="f{ink}" cx="{x + 9:.1f}" cy="{y:.0f}" r="4"/>'
        parts.append(mark + text_svg(text, x + 18, y + 4, "small muted"))
        x += wide + 14
    return "".join(parts), row + 1


def _describe(chart: Chart, series: Sequence[Band]) -> str:
    if chart.points:
        counts = ", ".join(f"{len(line.x)} {line.name}" for line in series)
        return f"{chart.title}, points: {counts}"
    lines = [
        f"{line.name or chart.title} goes from {compact_number(line.mean[0])} "
        f"to {compact_number(line.mean[-1])}"
        for line in series
    ]
    return f"{chart.title}: {'; '.join(lines)}"
