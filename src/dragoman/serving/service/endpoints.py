"""Decorators that turn functions into endpoints, and the table of the server's tasks.

An endpoint reads one message, and answers with another one, as a whole or in parts. It applies the
limits of its client and the time limit of a request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from dragoman.base.errors import RunError
from dragoman.runs.run import Run
from dragoman.serving.http.connection import FORM, PARTS
from dragoman.serving.http.messages import REFUSALS, json_response
from dragoman.serving.http.stream import EventStream, error_event
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Body, Service

Work = Callable[[Body, str], Coroutine[Any, Any, bytes]]
"""A function from a request and the name of its client to the answer as JSON."""
Whole: TypeAlias = Coroutine[Any, Any, bytes | Response]
Begin = Callable[[Body, str, Request], Coroutine[Any, Any, Whole | AsyncGenerator[bytes, None]]]
"""A function that takes a request, the name of its client and the HTTP request. It returns the
work, which then returns the whole answer or yields its parts."""
Answers: TypeAlias = Mapping[int | str, dict[str, Any]]
"""The descriptions of the answers of an endpoint for OpenAPI, by status."""


class Endpoints(APIRouter):
    """The endpoints of one router, and the types of the messages whose bodies they read without
    FastAPI."""

    def __init__(
        self,
        service: Service,
        prefix: str = "/v1",
        tag: str = "dragoman",
        refusals: Answers = REFUSALS,
        error: Callable[[int, dict[str, Any]], bytes] = error_event,
    ) -> None:
        """``refusals``: the answers with an error of each endpoint. ``error``: a function that
        makes the event of an error in a stream, from the status and the body of the error."""
        super().__init__(prefix=prefix, tags=[tag])
        self.service = service
        self.refusals, self.error = refusals, error
        self.bodies: list[type[BaseModel]] = []
        self.files: dict[str, int] = {}
        """The largest number of bytes of a request, for the paths that accept files whichever runs
        the server has."""

    def answers(
        self, path: str, body: type[BaseModel], answer: Any, summary: str, *, form: bool = False
    ) -> Callable[[Work[Body]], Work[Body]]:
        """Turn a function into an endpoint, which applies the limits of the client and the time
        limit of a request. ``form``: True if the body may also be a form."""

        def add(work: Work[Body]) -> Work[Body]:
            @wraps(work)
            async def begin(request: Body, client: str, _: Request) -> Whole:
                return work(request, client)

            self._add(path, body, summary, {"model": answer}, begin, form=form)
            return work

        return add

    def streams(
        self,
        kind: type[ServedRun],
        summary: str,
        about: str,
        *,
        also: Sequence[str] = (),
        seconds: float | None = None,
    ) -> Callable[[Begin[Body]], Begin[Body]]:
        """Turn a function into an endpoint for runs of one ``kind``. The function starts the work
        of a request; the answer is sent whole, or in parts if the request says so. ``about``: the
        description of the answer. ``also``: media types of answers besides JSON and events.
        ``seconds``: the time limit of an answer, if it differs from that of other requests."""

        def add(begin: Begin[Body]) -> Begin[Body]:
            media: dict[str, Any] = {name: {} for name in (*also, "text/event-stream")}
            answer = {"model": kind.gives, "description": about, "content": media}
            path = kind.path.removeprefix(self.prefix)
            self._add(path, kind.sent, summary, answer, begin, seconds=seconds)
            return begin

        return add

    def _add(
        self,
        path: str,
        body: type[BaseModel],
        summary: str,
        answer: dict[str, Any],
        begin: Begin[Any],
        *,
        form: bool = False,
        seconds: float | None = None,
    ) -> None:
        service = self.service
        seconds = seconds or service.settings.limits.seconds

        async def endpoint(http: Request) -> Response:
            async with AsyncExitStack() as held:
                received = service.receive(http, body, forms=form)
                request, client = await held.enter_async_context(received)
                work = await begin(request, client, http)
                if isinstance(work, AsyncGenerator):
                    return EventStream(work, held.pop_all().aclose, seconds, self.error)
                result = await service.finish(http, work, seconds)
                return json_response(result) if isinstance(result, bytes) else result

        endpoint.__doc__ = begin.__doc__
        self.post(
            path,
            name=begin.__name__,
            summary=summary,
            responses={200: answer, **self.refusals},
            openapi_extra=self._reads(body, form=form),
        )(endpoint)

    def _reads(self, body: type[BaseModel], *, form: bool) -> dict[str, Any]:
        """Describe the body of an endpoint for OpenAPI. ``form``: True if the body may be a form
        instead of JSON. A body of a type ``WithFiles`` may also be a form with files."""
        self.bodies.append(body)
        reference = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}
        content: dict[str, Any] = {"application/json": reference}
        if form:
            content[FORM] = reference
        if issubclass(body, WithFiles):
            content[PARTS] = {"schema": body.form()}
        return {"requestBody": {"required": True, "content": content}}


Asking = Callable[[Service, Body, str], Coroutine[Any, Any, BaseModel | bytes]]
"""A function from the service, a request and the name of its client to the answer, or to its
JSON."""


def asks(
    kind: type[ServedRun], summary: str, *router: Any
) -> Callable[[Asking[Body]], Callable[[Service], Endpoints]]:
    """Turn a function into the endpoint of a task, for runs of one ``kind``. ``router``: further
    arguments of ``Endpoints``."""

    def of(work: Asking[Body]) -> Callable[[Service], Endpoints]:
        def endpoints(service: Service) -> Endpoints:
            routes = Endpoints(service, *router)

            @wraps(work)
            async def answer_request(request: Body, client: str) -> bytes:
                answer = await work(service, request, client)
                if isinstance(answer, bytes):
                    return answer
                return await service.encode(client, lambda: answer)

            path = kind.path.removeprefix(routes.prefix)
            routes.answers(path, kind.sent, kind.gives, summary)(answer_request)
            return routes

        return endpoints

    return of


class ServedTasks(NamedTuple):
    """The classes and endpoints with which a server serves the runs of each task."""

    runs: tuple[type[ServedRun], ...]
    """The classes of served runs. A run is served by the first class whose method ``takes`` accepts
    it."""
    endpoints: tuple[Callable[[Service], Endpoints], ...]
    """The endpoints of the tasks, in the order of the API's description."""
    training: str = ""
    """The name of the run that this server shows while it is trained; "" if it serves runs."""

    def open(self, run: Run, settings: ServeSettings, name: str) -> ServedRun:
        """Load a run for serving. Errors: ``RunError``, also for a run that is not served."""
        for kind in self.runs:
            if kind.takes(run):
                return kind.open(run, settings, name)
        if all(kind.task != run.task.name for kind in self.runs):
            raise RunError(
                f"{run.folder} is a {run.task.called}, which the server does not support. From "
                f"the command line: {run.use}"
            )
        raise RunError(
            f"{run.folder} reads {run.task.noun}, but the server accepts only texts. From the "
            f"command line: {run.use}"
        )
