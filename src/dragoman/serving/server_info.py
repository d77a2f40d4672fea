"""The endpoints that describe the server and its runs, and those for operation."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field, create_model
from starlette.responses import JSONResponse, Response

from dragoman.forms.languages import name_of
from dragoman.pictures.records import Series
from dragoman.runs.run import Run
from dragoman.serving.http.messages import Message, error_of
from dragoman.serving.operate.meters import CONTENT_TYPE
from dragoman.serving.service.endpoints import ServedTasks
from dragoman.serving.service.served_run import Knowledge
from dragoman.serving.service.service import Service
from dragoman.tasks.report import summarise

MAX_POINTS = 400
"""The most points of one line: more than a screen can show."""


class _RunPart(Message):
    """A message with the attributes of a record."""

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
        samples=[SampleView.model_validate(one) for one in summary.samples],
        charts=[
            ChartView.model_validate(replace(one, series=list(map(_line, one.series))))
            for one in summary.charts
        ],
        tables=[TableView.model_validate(one) for one in summary.data],
        recipe=summary.recipe,
        limits=list(summary.limits),
    )


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
    status: Literal["ok"] = "ok"


class Readiness(Message):
    ready: bool
    runs: list[str]


class Takes(Message):
    """How a run reads files."""

    rate: int | None = None
    """Of recordings: samples a second."""
    words: bool | None = None
    """Of recordings that are transcribed: whether it can tell when each word is said."""
    height: int | None = None
    """Of pictures: what they are made to have, in pixels."""
    width: int | None = None
    channels: int | None = None
    """Of pictures: 1 for grey, 3 for colour."""


class RunInfo(Message):
    """A run that the server has."""

    name: str
    task: str
    """What it does."""
    look: bool
    """Whether it can be looked into (/v1/look)."""
    figures: bool
    """Whether figures that look into a run can be made of it (/v1/figures)."""
    reads: str = Field(
        description="What it reads.",
        json_schema_extra={"enum": ["text", "pictures", "recordings"]},
    )
    takes: Takes | None
    """How it reads files, where it does."""
    source: str
    target: str
    source_name: str
    target_name: str
    precision: str
    """How it is run on this machine."""
    beam: int
    """How many hypotheses its search keeps, unless a request says otherwise."""
    knows: Knowledge


class ServerInfo(Message):
    """What this server has and allows."""

    version: str
    runs: list[RunInfo]
    key_required: bool
    characters: int
    """Most characters of one request."""
    items: int
    """Most texts, pictures or recordings of one request."""
    upload_bytes: int
    """Most bytes of the pictures or recordings of one request."""
    recording_bytes: int
    """Most bytes of a recording to transcribe."""
    pixels: int
    """Most pixels of the pictures of one request."""
    sound_seconds: float
    """Most seconds of sound of one request."""


@cache
def told_of(tasks: ServedTasks) -> type[ServerInfo]:
    """``ServerInfo`` with the tasks of this server in its schema."""
    where = ", ".join(dict.fromkeys(f"{kind.task} ({kind.path})" for kind in tasks.runs))
    about = Field(
        description=f"The task of the run, which determines its endpoint: {where}.",
        json_schema_extra={"enum": list(dict.fromkeys(kind.task for kind in tasks.runs))},
    )
    of_run = create_model("RunInfo", __base__=RunInfo, __doc__=RunInfo.__doc__, task=(str, about))
    runs: Any = list[of_run]
    return create_model(
        "ServerInfo", __base__=ServerInfo, __doc__=ServerInfo.__doc__, runs=(runs, ...)
    )


def endpoints(service: Service, tasks: ServedTasks) -> APIRouter:
    """The endpoints that describe one server."""
    routes = APIRouter()

    @routes.get(
        "/v1/info",
        summary="Describe this server and its limits",
        tags=["dragoman"],
        responses={200: {"model": told_of(tasks)}},
    )
    async def info(http: Request) -> Response:
        """The runs with their languages, and the limits of a request."""
        service.count(http)
        return await service.rendered(http, lambda: told().model_dump_json().encode())

    def told() -> ServerInfo:
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
                    source_name=name_of(run.source),
                    target_name=name_of(run.target),
                    precision=run.engine.description,
                    beam=run.engine.search_settings.beam,
                    knows=run.knowledge,
                )
                for run in service.catalogue.runs
            ],
            key_required=service.keys.required,
            **limits.model_dump(include=set(ServerInfo.model_fields)),
        )

    @routes.get(
        "/v1/runs/{name}",
        summary="Describe how a run was trained and its scores",
        tags=["dragoman"],
        responses={
            200: {"model": RunView},
            404: error_of("There is no such run"),
        },
    )
    async def run_of(name: str, http: Request) -> Response:
        """Curves, scores, samples and the recipe."""
        with service.admit(http):
            served = service.catalogue.named(name)
            of_run = partial(view_of, served.run, name, served.source, served.target)
            return await service.rendered(http, lambda: of_run().model_dump_json().encode())

    @routes.get("/health", summary="Check that the process is alive", tags=["operation"])
    async def health(http: Request) -> Health:
        """Answers as long as the server can answer anything."""
        await service.probed(http)
        return Health()

    @routes.get(
        "/ready",
        summary="Check that the server accepts requests",
        tags=["operation"],
        responses={503: {"model": Readiness, "description": "Not now"}},
    )
    async def ready(http: Request) -> Response:
        """503 while the server shuts down, or if a run's search has died."""
        await service.probed(http)
        runs = service.catalogue.runs
        is_ready = not service.closing and all(run.queue.alive for run in runs)
        body = Readiness(ready=is_ready, runs=[run.name for run in runs])
        return JSONResponse(body.model_dump(), 200 if is_ready else 503)

    @routes.get(
        "/metrics",
        summary="Metrics for Prometheus",
        tags=["operation"],
        responses={403: error_of("For operators alone")},
    )
    async def metrics(http: Request) -> Response:
        """Requests, latency, queues, batches, tokens, connections, and what the holder of each API
        key used."""
        service.count(http)
        service.check_operator(http)
        return Response(service.meters.text(), headers={"content-type": CONTENT_TYPE})

    return routes
