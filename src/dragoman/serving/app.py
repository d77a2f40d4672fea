"""The server's application: its runs, endpoints, page and errors, put together in one place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from weakref import WeakKeyDictionary

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response

from dragoman.errors import DragomanError
from dragoman.serving import page, schema
from dragoman.serving.catalogue import Catalogue
from dragoman.serving.classify import v1 as classify_v1
from dragoman.serving.classify.schema import ClassifyRequest
from dragoman.serving.fill import v1 as fill_v1
from dragoman.serving.fill.schema import FillRequest
from dragoman.serving.http.addresses import Networks
from dragoman.serving.http.compression import Compressed
from dragoman.serving.http.connection import ClientGone
from dragoman.serving.http.docs import STYLE, docs_html
from dragoman.serving.http.door import Door
from dragoman.serving.http.limits import ApiKeys
from dragoman.serving.http.middleware import BodyLimit, Failures, HeadAsGet, Lingering, Measured
from dragoman.serving.http.openapi import describe, error_of, json_response
from dragoman.serving.http.refusals import FAILED, Refusal, error_body
from dragoman.serving.look import figures, inside, run_view
from dragoman.serving.look.schema import AttentionRequest, CellRequest, LookRequest, WordRequest
from dragoman.serving.operate.meters import CONTENT_TYPE, Meters
from dragoman.serving.parse import v1 as parse_v1
from dragoman.serving.parse.schema import ParseRequest
from dragoman.serving.served import ServedRun
from dragoman.serving.service import Service
from dragoman.serving.settings import ServeSettings
from dragoman.serving.translate import libretranslate, v1
from dragoman.serving.translate.languages import Detector
from dragoman.serving.write import v1 as write_v1
from dragoman.serving.write.schema import ContinuationsRequest, SurpriseRequest, WriteRequest

logger = logging.getLogger("dragoman")

ABOUT = (
    "Translation by models that were trained here. The endpoints of LibreTranslate, for its "
    "clients, and our own under `/v1`, which tell what the model knows of its translation; others "
    "are for runs of other tasks: to go on with a text, to label one, to fill in blanks, to parse. "
    "Every "
    'error is `{"error": "…", "code": "…", "values": {…}}` and says what to do.'
)


def create_app(runs: Sequence[ServedRun], settings: ServeSettings, detector: Detector) -> FastAPI:
    """An application that serves ``runs``, of which there is at least one.

    Errors: ``DataError`` for a file of API keys that cannot be used.
    """
    keys = ApiKeys.load(settings.api_keys, settings.limits)
    meters = Meters(lambda: service.catalogue.runs)
    service = Service(Catalogue(runs, detector), settings, keys, meters)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.catalogue.start()
        yield
        service.closing = True
        service.figures.close()
        await service.catalogue.close()
        service.texts.close()

    app = FastAPI(
        title="dragoman",
        summary="A translator over runs of your own",
        description=ABOUT,
        version=version("dragoman"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        # A redirect would lead to whatever host the request names.
        redirect_slashes=False,
        openapi_tags=[
            {"name": "LibreTranslate", "description": "Works with LibreTranslate's clients."},
            {"name": "dragoman", "description": "Our own."},
            {"name": "operation", "description": "For those who run the server."},
        ],
    )
    app.state.service = service
    app.include_router(libretranslate.router(service))
    app.include_router(v1.router(service))
    app.include_router(write_v1.router(service))
    app.include_router(classify_v1.router(service))
    app.include_router(fill_v1.router(service))
    app.include_router(parse_v1.router(service))
    app.include_router(inside.router(service))
    app.include_router(figures.router(service))
    _add_operation(app, service)
    _add_run(app, service)
    _add_page(app, service)
    _add_errors(app, service)
    bodies = (
        schema.LibreTranslateRequest,
        schema.DetectRequest,
        schema.TranslateRequest,
        WriteRequest,
        SurpriseRequest,
        ContinuationsRequest,
        ClassifyRequest,
        FillRequest,
        ParseRequest,
        LookRequest,
        AttentionRequest,
        WordRequest,
        CellRequest,
        figures.FigureRequest,
    )
    describe(app, bodies)
    # The first is the innermost.
    app.add_middleware(Failures)
    app.add_middleware(BodyLimit, most_bytes=settings.limits.body_bytes)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
            expose_headers=["retry-after", "x-request-id"],
        )
    app.add_middleware(Compressed)
    app.add_middleware(page.SafeHeaders)
    app.add_middleware(Measured, service=service)
    app.add_middleware(HeadAsGet)
    app.add_middleware(Lingering, most_seconds=settings.limits.idle_seconds)
    app.add_middleware(Door, proxies=Networks(settings.proxies))
    return app


def _add_operation(app: FastAPI, service: Service) -> None:
    """Endpoints for those who run the server."""

    @app.get("/health", summary="Whether the process lives", tags=["operation"])
    async def health() -> schema.Health:
        """Answers as long as the server can answer anything."""
        return schema.Health()

    @app.get(
        "/ready",
        summary="Whether requests are taken",
        tags=["operation"],
        responses={503: {"model": schema.Readiness, "description": "Not now"}},
    )
    async def ready() -> Response:
        """503 while the server shuts down, or if a run's search has died."""
        runs = service.catalogue.runs
        is_ready = not service.closing and all(run.queue.alive for run in runs)
        body = schema.Readiness(ready=is_ready, runs=[run.name for run in runs])
        return JSONResponse(body.model_dump(), 200 if is_ready else 503)

    @app.get(
        "/metrics",
        summary="Metrics for Prometheus",
        tags=["operation"],
        responses={403: error_of("For operators alone")},
    )
    async def metrics(http: Request) -> Response:
        """Requests, latency, queues, batches, tokens, connections, and what the holder of each API
        key used."""
        service.check_operator(http)
        return Response(service.meters.text(), headers={"content-type": CONTENT_TYPE})


def _add_run(app: FastAPI, service: Service) -> None:
    known: WeakKeyDictionary[ServedRun, bytes] = WeakKeyDictionary()

    @app.get(
        "/v1/runs/{name}",
        summary="How a run was trained, and how good it is",
        tags=["dragoman"],
        responses={
            200: {"model": run_view.RunView},
            404: error_of("There is no such run"),
        },
    )
    async def run(name: str, http: Request) -> Response:
        """Curves, scores, samples and the recipe."""
        with service.admit(http):
            served = service.catalogue.named(name)
            if served.run is None:
                raise Refusal("no_record", f"Nothing is known of how {name} was trained.", run=name)
            if served not in known:
                known[served] = await asyncio.to_thread(run_view.view, served.run, name)
            return json_response(known[served])


def _add_page(app: FastAPI, service: Service) -> None:
    """The page and the documentation, outside the API's description."""
    if service.settings.page:

        @app.get("/", include_in_schema=False)
        async def index() -> Response:
            return page.index()

        @app.get("/assets/{name}", include_in_schema=False)
        async def asset(name: str, http: Request) -> Response:
            try:
                return page.file(name)
            except Refusal:
                service.count_stranger(http)
                raise

    @app.get("/docs", include_in_schema=False)
    async def docs(http: Request) -> Response:
        # The examples hold the address that was asked for: nobody else is to be shown them.
        page = docs_html(app.openapi(), str(http.base_url))
        return HTMLResponse(page, headers={"cache-control": "no-store"})

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return FileResponse(STYLE, media_type="text/css")


def _add_errors(app: FastAPI, service: Service) -> None:
    """Every error as a ``schema.ErrorBody``."""

    @app.exception_handler(Refusal)
    async def refusal(_: Request, error: Refusal) -> Response:
        headers = {}
        if error.retry_after is not None:
            headers["retry-after"] = str(max(1, round(error.retry_after)))
        if error.status == 413:
            headers["connection"] = "close"  # what is left of the body is thrown away
        return JSONResponse(error.body, error.status, headers)

    @app.exception_handler(DragomanError)
    async def mendable(_: Request, error: DragomanError) -> Response:
        # What is to be mended is the operator's affair, and names folders.
        logger.error("%s", error)
        return JSONResponse(FAILED, 500)

    @app.exception_handler(ClientGone)
    async def gone(_: Request, error: ClientGone) -> Response:
        service.meters.gone.inc()
        # nginx's number for it; nobody reads this but the meters.
        return Response(status_code=499)

    @app.exception_handler(HTTPException)
    async def framework(http: Request, error: HTTPException) -> Response:
        """A path or a method that there is not: who tries them is limited as others are."""
        try:
            service.count_stranger(http)
        except Refusal as too_many:
            return await refusal(http, too_many)
        code = "no_such_method" if error.status_code == 405 else "no_such_path"
        body = error_body(code, error.detail, {})
        return JSONResponse(body, error.status_code, error.headers)
