"""What the page's tab *Run* shows: curves, scores, samples and the recipe of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from dragoman.pictures.records import Chart, RunSummary, Series
from dragoman.runs.run import Run
from dragoman.serving.http.messages import Message
from dragoman.tasks.report import summarise

MAX_POINTS = 400
"""Points of one line: more than a screen can tell apart."""


class _RunPart(Message):
    """A part that is told as its record has it."""

    model_config = ConfigDict(from_attributes=True)


class Line(_RunPart):
    """One line of a chart."""

    name: str
    x: list[float]
    y: list[float]


class ChartView(_RunPart):
    """Some lines over one axis."""

    title: str
    x_label: str
    y_label: str
    log_y: bool
    marked_x: Annotated[float | None, Field(default=None)]
    marked_as: str
    series: list[Line]


class ScoreView(Message):
    name: str
    value: float
    """As it was computed."""
    called: str
    """What people call it; name is what files call it."""
    times: float
    """What a value is multiplied by to be shown."""
    digits: int
    """Behind the point of what is shown."""
    unit: str
    """What stands behind it: " %" or nothing."""
    test: str
    """Which sentences it was measured on."""
    signature: str
    """sacreBLEU's: without it a BLEU cannot be compared."""


class SampleView(_RunPart):
    source: str
    hypothesis: str
    reference: str


class TableView(_RunPart):
    title: str
    header: list[str]
    rows: list[list[str | int | float]]
    note: str


class RunView(Message):
    """All that is told of a run."""

    name: str
    source: str
    target: str
    notice: str
    """Said first and plainly, e.g. that the corpus is synthetic."""
    facts: list[tuple[str, str]]
    scores: list[ScoreView]
    samples: list[SampleView]
    charts: list[ChartView]
    tables: list[TableView]
    recipe: str
    """As TOML."""
    limits: list[str]


def view(run: Run, name: str, source: str, target: str) -> bytes:
    """A ``RunView`` as JSON, read from the run's folder; takes a moment, so call it in a thread.
    ``source`` and ``target``: the languages as ``ServedRun`` has them.

    Errors: ``RunError``.
    """
    return view_of(summarise(run), name, source, target).model_dump_json().encode()


def view_of(summary: RunSummary, name: str, source: str, target: str) -> RunView:
    return RunView(
        name=name,
        source=source,
        target=target,
        notice=summary.notice,
        facts=list(summary.facts),
        scores=[
            ScoreView(
                name=s.name,
                value=s.value,
                called=s.measure.called,
                times=s.measure.times,
                digits=s.measure.digits,
                unit=s.measure.unit,
                test=s.test,
                signature=s.signature,
            )
            for s in summary.scores
        ],
        samples=[SampleView.model_validate(one) for one in summary.samples],
        charts=[ChartView.model_validate(_thinned(one)) for one in summary.charts],
        tables=[TableView.model_validate(one) for one in summary.data],
        recipe=summary.recipe,
        limits=list(summary.limits),
    )


def _thinned(chart: Chart) -> Chart:
    return replace(chart, series=[_line(one.name, one.x, one.y) for one in chart.series])


def _line(name: str, x: Sequence[float], y: Sequence[float]) -> Series:
    """Thin a line, keeping in each stretch its least and its greatest value."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if _is_number(a) and _is_number(b)]
    if len(points) > MAX_POINTS:
        stretch = -(-2 * len(points) // MAX_POINTS)
        kept = []
        for begin in range(0, len(points), stretch):
            part = points[begin : begin + stretch]
            kept += sorted({min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])})
        points = [points[0], *(p for p in kept if p not in (points[0], points[-1])), points[-1]]
    return Series(name, [a for a, _ in points], [b for _, b in points])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and value == value and abs(value) != float("inf")
