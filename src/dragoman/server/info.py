"""The endpoints that describe the server and its runs, and those for operation."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field, create_model
from starlette.responses import JSONResponse, Response

from dragoman.base.reading import read_bytes
from dragoman.forms.languages import name_of
from dragoman.pictures.records import Chart, Series
from dragoman.runs.run import MOST_EXAMPLE, Run
from dragoman.serving.http.messages import Message, error_of
from dragoman.serving.operate.middleware import CONTENT_TYPE
from dragoman.serving.service.endpoints import ServedTasks
from dragoman.serving.service.served_run import Knowledge
from dragoman.serving.service.service import Service
from dragoman.tasks.report import summarise

FILE = "application/octet-stream"
"""The media type of a file that a browser must not open."""
MAX_POINTS = 400
"""The most points of one line: more than a screen can show."""


class _RunPart(Message):
    """A message with the attributes of a record."""

    model_config = ConfigDict(from_attributes=True)


class Line(_RunPart):
    """A line of a chart, as points."""

    name: str
    """The name of the line in the legend."""
    x: list[float]
    """The x coordinates of the points."""
    y: list[float]
    """The y coordinates of the points, as many as in `x`."""


class ChartView(_RunPart):
    """A chart with one or several lines."""

    title: str
    """The title to write above the chart."""
    x_label: str
    """The label of the x axis."""
    y_label: str
    """The label of the y axis. It may be empty."""
    log_y: bool
    """True if the y axis is logarithmic."""
    marked_x: Annotated[float | None, Field(default=None)]
    """The x coordinate to mark, such as the update of the best checkpoint; null if there is
    none."""
    marked_as: str
    """The label of the mark. Empty without a mark."""
    series: list[Line]
    """The lines that the chart shows."""


class ScoreView(Message):
    """A score of the run on a test set."""

    name: str
    """The name of the score in files, such as `bleu`."""
    value: float
    """The score as it was computed."""
    called: str
    """The name of the score for readers, such as BLEU."""
    times: float
    """The factor by which `value` is multiplied when it is shown."""
    digits: int
    """The number of digits after the decimal point when the score is shown."""
    unit: str
    """The unit to write after the shown number: " %" or nothing."""
    test: str
    """The test set and its number of sentences."""
    signature: str
    """The signature of sacreBLEU, which records how the score was computed. Empty for other
    scores."""


class SampleView(_RunPart):
    """A sentence of the test set and its output."""

    source: str
    """The input that the run read."""
    hypothesis: str
    """The output that the run wrote."""
    reference: str
    """The output that the test set expects."""


class TableView(_RunPart):
    """A table about the training data."""

    title: str
    """The title to write above the table."""
    header: list[str]
    """The names of the columns, in order."""
    rows: list[list[str | int | float]]
    """The rows of the table; each has a cell for every column."""
    note: str
    """A remark below the table. It may be empty."""


class RunView(Message):
    """The training, the scores and the recipe of a run."""

    name: str
    """The name of the run on this server."""
    source: str
    """The source language as a code."""
    target: str
    """The target language as a code."""
    notice: str
    """A notice to show first, such as that the corpus is synthetic. It may be empty."""
    facts: list[tuple[str, str]]
    """The facts about the training, as pairs of a name and a value."""
    scores: list[ScoreView]
    """The scores on the test sets."""
    samples: list[SampleView]
    """Some sentences of the test set with their outputs."""
    charts: list[ChartView]
    """The charts of the training, such as the loss."""
    tables: list[TableView]
    """The tables about the training data."""
    recipe: str
    """The settings of the run, as TOML."""
    limits: list[str]
    """The known limits of the run, as English sentences."""


def view_of(run: Run, name: str, source: str, target: str) -> RunView:
    """The description of a run, read from its folder; slow, so call it in a thread. ``source`` and
    ``target``: the languages as ``ServedRun`` has them.

    Errors: ``RunError``.
    """
    summary = summarise(run)
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
        samples=[SampleView.model_validate(sample) for sample in summary.samples],
        charts=chart_views(summary.charts),
        tables=[TableView.model_validate(table) for table in summary.data],
        recipe=summary.recipe,
        limits=list(summary.limits),
    )


def chart_views(charts: Sequence[Chart]) -> list[ChartView]:
    """Return the messages for some charts, their lines thinned out."""
    return [
        ChartView.model_validate(replace(chart, series=list(map(_line, chart.series))))
        for chart in charts
    ]


def _line(whole: Series) -> Series:
    """Thin out a line, but keep the least and the greatest value of each stretch."""
    both = zip(whole.x, whole.y, strict=True)
    points = [(a, b) for a, b in both if math.isfinite(a) and math.isfinite(b)]
    if len(points) > MAX_POINTS:
        stretch = -(-2 * len(points) // MAX_POINTS)
        kept = []
        for begin in range(0, len(points), stretch):
            part = points[begin : begin + stretch]
            kept += sorted({min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])})
        points = [points[0], *(p for p in kept if p not in (points[0], points[-1])), points[-1]]
    return Series(whole.name, [a for a, _ in points], [b for _, b in points])


class Health(Message):
    """The state of the server's process."""

    status: Literal["ok"] = "ok"
    """The state, which is always `ok`."""


class Readiness(Message):
    """The state of the server and its runs."""

    ready: bool
    """True if the server accepts requests."""
    runs: list[str]
    """The names of the runs of the server."""


class Takes(Message):
    """The format to which a run converts the files that it reads."""

    rate: int | None = None
    """For recordings: the number of samples per second; null for pictures."""
    words: bool | None = None
    """For runs that transcribe: true if the answer can have the times of words; null for other
    runs."""
    height: int | None = None
    """For pictures: the height in pixels to which they are scaled; null for recordings."""
    width: int | None = None
    """For pictures: the width in pixels to which they are scaled. null if the width varies, and for
    recordings."""
    channels: int | None = None
    """For pictures: 1 for grey, 3 for colour; null for recordings."""


class RunInfo(Message):
    """A run that the server has loaded."""

    name: str
    """The name of the run, for the field `run` of requests."""
    task: str
    """The task for which the run was trained."""
    look: bool
    """True if `/v1/look` can inspect the run."""
    figures: bool
    """True if `/v1/figures` can compute figures from the run."""
    reads: str = Field(
        description="The kind of input that the run reads.",
        json_schema_extra={"enum": ["text", "pictures", "recordings"]},
    )
    takes: Takes | None
    """The format of the files that the run reads; null for runs that read text."""
    source: str
    """The source language as a code, or `und` if it is not known."""
    target: str
    """The target language as a code, or `und` if it is not known."""
    targets: list[str]
    """The codes of all target languages, that of `target` first."""
    source_name: str
    """The English name of the source language."""
    target_name: str
    """The English name of the target language."""
    precision: str
    """The number format and implementation with which the run computes on this machine, as an
    English phrase."""
    beam: int
    """The number of hypotheses that the search keeps at each step, unless a request sets it."""
    knows: Knowledge
    """The description of the run's training data."""


class ServerInfo(Message):
    """The runs and the limits of the server."""

    version: str
    """The version of dragoman on the server."""
    runs: list[RunInfo]
    """The runs that the server has loaded."""
    training: str
    """The name of the run that this server shows while it is trained (`dragoman train --page`).
    Empty for a server of runs."""
    key_required: bool
    """True if requests need an API key."""
    characters: int
    """The maximum number of characters in one request."""
    items: int
    """The maximum number of texts, pictures or recordings in one request."""
    upload_bytes: int
    """The maximum number of bytes of the pictures or recordings in one request."""
    recording_bytes: int
    """The maximum number of bytes of a recording to transcribe."""
    pixels: int
    """The maximum number of pixels, over all pictures in one request."""
    sound_seconds: float
    """The maximum number of seconds of sound in one request."""


@cache
def info_type(tasks: ServedTasks) -> type[ServerInfo]:
    """``ServerInfo`` with the tasks of this server in its schema."""
    where = ", ".join(dict.fromkeys(f"{kind.task} ({kind.path})" for kind in tasks.runs))
    about = Field(
        description=f"The task of the run; in brackets, the path that serves it: {where}.",
        json_schema_extra={"enum": list(dict.fromkeys(kind.task for kind in tasks.runs))},
    )
    of_run = create_model("RunInfo", __base__=RunInfo, __doc__=RunInfo.__doc__, task=(str, about))
    runs: Any = list[of_run]
    return create_model(
        "ServerInfo",
        __base__=ServerInfo,
        __doc__=ServerInfo.__doc__,
        runs=(runs, Field(description="The runs that the server has loaded.")),
    )


def endpoints(service: Service, tasks: ServedTasks) -> APIRouter:
    """The endpoints that describe one server."""
    routes = APIRouter()

    @routes.get(
        "/v1/info",
        summary="Describe the server",
        tags=["dragoman"],
        responses={200: {"model": info_type(tasks)}},
    )
    async def info(http: Request) -> Response:
        """Returns the runs with their tasks and languages, and the limits of a request."""
        service.count(http)
        return await service.json_once(http, lambda: server_info().model_dump_json().encode())

    def server_info() -> ServerInfo:
        limits = service.settings.limits
        return ServerInfo(
            version=version("dragoman"),
            runs=[
                RunInfo(
                    name=run.name,
                    task=run.task,
                    look=run.can_be_looked_into,
                    figures=run.has_figures,
                    reads=run.reads,
                    takes=Takes(**run.reads_as, words=run.times_words) if run.reads_as else None,
                    source=run.source,
                    target=run.target,
                    targets=list(run.targets),
                    source_name=name_of(run.source),
                    target_name=name_of(run.target),
                    precision=run.engine.description,
                    beam=run.engine.search_settings.beam,
                    knows=run.knowledge,
                )
                for run in service.catalogue.runs
            ],
            training=tasks.training,
            key_required=service.keys.required,
            **limits.model_dump(include=set(ServerInfo.model_fields)),
        )

    @routes.get(
        "/v1/runs/{name}",
        summary="Describe a run",
        tags=["dragoman"],
        responses={
            200: {"model": RunView},
            404: error_of("No run has this name"),
        },
    )
    async def run_of(name: str, http: Request) -> Response:
        """Returns the training curves, scores, samples and recipe of a run."""
        with service.admit(http):
            served = service.catalogue.run_named(name)
            of_run = partial(view_of, served.run, name, served.source, served.target)
            return await service.json_once(http, lambda: of_run().model_dump_json().encode())

    @routes.get(
        "/v1/runs/{name}/example",
        summary="Get an example file",
        tags=["dragoman"],
        responses={
            200: {"content": {FILE: {}}, "description": "The file"},
            204: {"description": "The run keeps no example"},
            404: error_of("No run has this name"),
        },
    )
    async def example(name: str, http: Request) -> Response:
        """Returns a picture or a recording to try the run with. It is one of the files that the run
        was validated on while it learned, and is kept in the folder of the run."""
        with service.admit(http):
            path = service.catalogue.run_named(name).run.example()
            if path is None:
                return Response(status_code=204)
            content = await asyncio.to_thread(read_bytes, path, MOST_EXAMPLE)
            return Response(content, headers={"content-type": FILE})

    @routes.get("/health", summary="Check the process", tags=["operation"])
    async def health(http: Request) -> Health:
        """Returns status 200 as long as the process can answer requests."""
        await service.count_cheap(http)
        return Health()

    @routes.get(
        "/ready",
        summary="Check if requests are accepted",
        tags=["operation"],
        responses={503: {"model": Readiness, "description": "The server does not accept requests"}},
    )
    async def ready(http: Request) -> Response:
        """Returns status 200 if the server accepts requests. Status 503: the server is shutting
        down, or the search of a run has failed."""
        await service.count_cheap(http)
        runs = service.catalogue.runs
        is_ready = not service.closing and all(run.queue.alive for run in runs)
        body = Readiness(ready=is_ready, runs=[run.name for run in runs])
        return JSONResponse(body.model_dump(), 200 if is_ready else 503)

    @routes.get(
        "/metrics",
        summary="Get metrics for Prometheus",
        tags=["operation"],
        responses={403: error_of("Only operators may use this path")},
    )
    async def metrics(http: Request) -> Response:
        """Returns the number and latency of requests, the queues, batches, tokens and connections,
        and the use by each holder of an API key. Only for the addresses in `operators`."""
        service.count(http)
        service.check_operator(http)
        return Response(service.meters.text(), headers={"content-type": CONTENT_TYPE})

    return routes
