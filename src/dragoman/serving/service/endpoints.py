"""How endpoints are made of functions, and what a server does for the runs of each task.

An endpoint reads one message and answers another, whole or in parts, within the limits of its
client and the time that a request has.
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
"""A request and its client's name -> the answer as JSON."""
Whole: TypeAlias = Coroutine[Any, Any, bytes | Response]
Begin = Callable[[Body, str, Request], Coroutine[Any, Any, Whole | AsyncGenerator[bytes, None]]]
"""A request, its client's name and how it came -> the work, which brings an answer, or its parts as
they come."""
Answers: TypeAlias = Mapping[int | str, dict[str, Any]]
"""What an endpoint may answer, by its status."""


class Endpoints(APIRouter):
    """Some endpoints over one server, and the messages that they read themselves."""

    def __init__(
        self,
        service: Service,
        prefix: str = "/v1",
        tag: str = "dragoman",
        refusals: Answers = REFUSALS,
        error: Callable[[int, dict[str, Any]], bytes] = error_event,
    ) -> None:
        """``refusals``: what each may answer but 200. ``error``: the event that tells a stream's
        client of an error, by its status and body."""
        super().__init__(prefix=prefix, tags=[tag])
        self.service = service
        self.refusals, self.error = refusals, error
        self.bodies: list[type[BaseModel]] = []
        self.files: dict[str, int] = {}
        """Paths that take files whatever runs there are, and the most bytes of a request there."""

    def answers(
        self, path: str, body: type[BaseModel], answer: Any, summary: str, *, form: bool = False
    ) -> Callable[[Work[Body]], Work[Body]]:
        """Makes an endpoint of a function, within the limits of its client and the time that a
        request has. ``form``: whether the body may be a form in place of JSON."""

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
        """Makes an endpoint of a function that begins the work of a request for runs of a kind: the
        answer comes whole, or part by part where that is asked for. ``about``: what is answered.
        ``also``: media types of answers beside JSON and events. ``seconds``: the time that an
        answer may take, where it is not that of every request."""

        def add(begin: Begin[Body]) -> Begin[Body]:
            media: dict[str, Any] = {one: {} for one in (*also, "text/event-stream")}
            told = {"model": kind.gives, "description": about, "content": media}
            path = kind.path.removeprefix(self.prefix)
            self._add(path, kind.sent, summary, told, begin, seconds=seconds)
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
                    leave, too_slow = held.pop_all().aclose, service.too_slow(seconds)
                    return EventStream(work, leave, 2 * seconds, too_slow, self.error)
                found = await service.finish(http, work, seconds)
                return json_response(found) if isinstance(found, bytes) else found

        endpoint.__doc__ = begin.__doc__
        self.post(
            path,
            name=begin.__name__,
            summary=summary,
            responses={200: answer, **self.refusals},
            openapi_extra=self._reads(body, form=form),
        )(endpoint)

    def _reads(self, body: type[BaseModel], *, form: bool) -> dict[str, Any]:
        """How the body of an endpoint is described. A ``form``, or one with files, may be sent,
        too."""
        self.bodies.append(body)
        reference = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}
        content: dict[str, Any] = {"application/json": reference}
        if form:
            content[FORM] = reference
        if issubclass(body, WithFiles):
            file = {"type": "array", "items": {"type": "string", "format": "binary"}}
            parts = {"type": "object", "required": ["file"], "properties": {"file": file}}
            content[PARTS] = {"schema": parts}
        return {"requestBody": {"required": True, "content": content}}


Asking = Callable[[Service, Body, str], Coroutine[Any, Any, BaseModel | bytes]]
"""A server, a request and its client's name -> the answer, or its JSON."""


def asks(
    kind: type[ServedRun], summary: str, *router: Any
) -> Callable[[Asking[Body]], Callable[[Service], Endpoints]]:
    """Makes a task's endpoint of a function: where runs of a kind are asked. ``router``: as
    ``Endpoints`` takes it after the server."""

    def of(work: Asking[Body]) -> Callable[[Service], Endpoints]:
        def endpoints(service: Service) -> Endpoints:
            routes = Endpoints(service, *router)

            @wraps(work)
            async def answered(request: Body, client: str) -> bytes:
                answer = await work(service, request, client)
                if isinstance(answer, bytes):
                    return answer
                return await service.written(client, lambda: answer)

            path = kind.path.removeprefix(routes.prefix)
            routes.answers(path, kind.sent, kind.gives, summary)(answered)
            return routes

        return endpoints

    return of


class ServedTasks(NamedTuple):
    """All that a server does for runs of each task."""

    runs: tuple[type[ServedRun], ...]
    """What holds a run: the first that takes it."""
    endpoints: tuple[Callable[[Service], Endpoints], ...]
    """Where runs are asked, in the order in which the API describes it."""

    def open(self, run: Run, settings: ServeSettings, name: str) -> ServedRun:
        """Load a run for serving. Errors: ``RunError``, also for a run that is not served."""
        for kind in self.runs:
            if kind.takes(run):
                return kind.open(run, settings, name)
        if all(kind.task != run.task.name for kind in self.runs):
            raise RunError(
                f"{run.folder} is a {run.task.called}, which the server does not take; from the "
                f"command line: {run.use}"
            )
        raise RunError(
            f"{run.folder} reads {run.task.noun}, and the server takes texts; from the command "
            f"line: {run.use}"
        )
