"""What all endpoints share: who asks, within which limits, and for how long.

``Service`` holds the parts of one server; ``Endpoints`` are thin over it: each reads one message
and answers another. ``ServedTasks`` are the runs that a server takes, and the endpoints of their
tasks, as ``dragoman.program`` names them.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from functools import wraps
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from dragoman.base.errors import RunError, SearchError
from dragoman.runs.run import Run
from dragoman.serving.document_workers.pool import DocumentWorkers
from dragoman.serving.http.clients import ApiKeys, Networks, key_in_header
from dragoman.serving.http.connection import (
    FORM,
    PARTS,
    Sites,
    address_of,
    read_fields,
    while_connected,
)
from dragoman.serving.http.limits import Client, Limiter, LimitSettings, Places
from dragoman.serving.http.messages import REFUSALS, Texts, json_response, written
from dragoman.serving.http.refusals import (
    Refusal,
    key_in_header_needed,
    missing_field,
    unsearchable,
)
from dragoman.serving.http.stream import EventStream, error_event
from dragoman.serving.http.uploads import FIELDS_BYTES, Upload, WithFiles, read_with_files
from dragoman.serving.look.outputs import DetectedLanguage
from dragoman.serving.operate.meters import Meters
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.catalogue import AUTO, Catalogue, Served
from dragoman.serving.service.served_run import ServedRun, bad_field

TOO_MANY_SECONDS = 1.0
"""Who asks too often waits so long for each answer. Answered at once, 60 connections that ask again
and again would have the event loop to themselves, and all others wait behind them."""

T = TypeVar("T")
Body = TypeVar("Body", bound=BaseModel)
Work = Callable[[Body, str], Coroutine[Any, Any, bytes]]
"""A request and its client's name -> the answer as JSON."""
Whole: TypeAlias = Coroutine[Any, Any, bytes | Response]
Begin = Callable[[Body, str, Request], Coroutine[Any, Any, Whole | AsyncGenerator[bytes, None]]]
"""A request, its client's name and how it came -> the work, which brings an answer, or its parts as
they come."""
Answers: TypeAlias = Mapping[int | str, dict[str, Any]]
"""What an endpoint may answer, by its status."""


class Service:
    """The parts of one server. Lives in the event loop."""

    def __init__(
        self, catalogue: Catalogue, settings: ServeSettings, keys: ApiKeys, meters: Meters
    ) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.keys = keys
        self.meters = meters
        self.limiter = Limiter(settings.limits)
        self.probes = Limiter(settings.limits)
        """Who asks for /health and /ready, which are never refused."""
        self.texts = FairExecutor("texts")
        """Where text is cut, decoded and written."""
        self.figures = FairExecutor("figures", of_client=4, of_all=64)
        """Who computes figures."""
        self.documents = FairExecutor("documents")
        """Where the texts of documents are cut and put together,"""
        self.document_workers = DocumentWorkers()
        """and where documents are read and written."""
        held = settings.limits.uploads_held
        self.uploads = Places("uploads", held // 4, held)
        """What large requests take of memory,"""
        self.strangers = Places("uploads", held // 16, held // 4)
        """and those whose client is not known before they are read."""
        self.operators = Networks(settings.operators)
        self.sites = Sites(settings.host, settings.allowed_host, settings.origins)
        self.under_way: set[object] = set()
        """Something for each request that was read and may have chosen a run."""
        self._making = asyncio.Lock()
        self.closing = False
        """Set when the server is told to stop: it finishes what it took."""

    @asynccontextmanager
    async def receive(
        self, http: Request, model: type[Body], *, forms: bool = False
    ) -> AsyncIterator[tuple[Body, str]]:
        """The body of a request, checked, and its client's name, within that client's limits.
        ``forms``: whether it may be a form in place of JSON.

        A client that is known without the body (by its address, or by a key in the header) is held
        to its limits before the body is read. Any other request counts for its address until its
        key is read. Raises Refusal 400, 403, 408, 413, 415 or 429.
        """
        with ExitStack() as held:
            client: Client | None = None
            if not self.keys.required or key_in_header(http.headers.get("authorization")):
                client = held.enter_context(self.admit(http))
            else:
                self.limiter.take_one(_stranger(http))
            size = _size(http, model, self.settings.limits)
            if client is None and size > self.settings.limits.body_bytes:
                raise key_in_header_needed(self.settings.limits.body_bytes)
            if size > FIELDS_BYTES:
                pool = self.uploads if client else self.strangers
                held.enter_context(pool.held((client or _stranger(http)).name, size))
            fields, files = await self._fields(http, model, forms=forms)
            if client is None:
                # From here on it counts for the holder of its key, if that is known.
                self.limiter.give_back(_stranger(http))
                key = fields.get("api_key")
                client = held.enter_context(self.admit(http, key if isinstance(key, str) else None))
            try:
                body = model.model_validate(fields)
            except ValidationError as error:
                raise _invalid(error) from None
            if isinstance(body, WithFiles):
                body.attach(files)
            mark = object()
            self.under_way.add(mark)
            held.callback(self.under_way.discard, mark)
            yield body, client.name

    @contextmanager
    def admit(self, http: Request, key: str | None = None) -> Iterator[Client]:
        """A request of a client, within the limits. Raises Refusal 403 or 429."""
        given = key_in_header(http.headers.get("authorization")) or key
        try:
            client = self.keys.client(given, _stranger(http).name)
        except Refusal:
            self.count(http)
            raise
        http.state.client = client.name
        with self.limiter.admit(client):
            self.meters.count_request(client.name)
            yield client

    async def check_site(self, http: Request) -> None:
        """What ``Sites`` refuses is counted. Raises Refusal 403, 421 or 429."""
        try:
            self.sites.check(http)
        except Refusal:
            self.count(http)
            raise

    def count(self, http: Request) -> None:
        """Count a request that needs no key, or is refused: of the holder of the key that it brings
        all the same, or by its address. Raises Refusal 429.
        """
        given, client = key_in_header(http.headers.get("authorization")), _stranger(http)
        with suppress(Refusal):
            client = self.keys.client(given, client.name)
        self.limiter.take_one(client)

    async def slow_down(self) -> None:
        """Let one who asks too often wait."""
        await asyncio.sleep(TOO_MANY_SECONDS)

    async def probed(self, http: Request) -> None:
        """Count a request that is always answered: who sends too many waits for each."""
        try:
            self.probes.take_one(_stranger(http))
        except Refusal:
            await self.slow_down()

    async def once(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` makes: beside the event loop, and once for as long as the same runs are
        served. ``name`` tells it from all else that is made so."""
        made = self.catalogue.made
        if name not in made:
            async with self._making:  # whoever asks meanwhile does not make it, too
                if name not in made:
                    made[name] = await asyncio.to_thread(make)
        found: T = made[name]
        return found

    async def rendered(self, http: Request, make: Callable[[], bytes], name: str = "") -> Response:
        """JSON that is made ``once`` for each path and ``name``."""
        return json_response(await self.once(f"{http.scope['path']} {name}", make))

    def check_texts(self, given: Texts, client: str) -> list[str]:
        """The texts of a request. Raises Refusal 400 for more than a client may send at once."""
        texts = [given] if isinstance(given, str) else given
        self.limiter.check_texts(texts, self.keys.limits_of(client))
        return texts

    def check_operator(self, http: Request) -> None:
        """Raises Refusal 403 for who is not one of those who run the server."""
        if http.client is None or http.client.host not in self.operators:
            raise Refusal(
                "operators_only",
                "This is for those who run the server, and your address is not among theirs "
                "(its setting operators).",
            )

    async def _fields(
        self, http: Request, model: type[BaseModel], *, forms: bool
    ) -> tuple[dict[str, Any], list[Upload]]:
        """The fields of a body, and the files of a form."""
        limits = self.settings.limits
        values = max(limits.values, 4 * limits.items)
        try:
            async with asyncio.timeout(limits.seconds):
                if issubclass(model, WithFiles):
                    return await read_with_files(http, model, limits, values)
                return await read_fields(http, values, forms=forms), []
        except TimeoutError:
            raise Refusal(
                "late_body",
                f"The request was not there in whole after {limits.seconds:g} seconds. Send it "
                "again.",
                seconds=limits.seconds,
            ) from None

    async def finish(
        self, http: Request, work: Coroutine[Any, Any, T], seconds: float | None = None
    ) -> T:
        """Do ``work`` in the time that a request has, or in ``seconds``, and only while its client
        is there.

        Raises Refusal 504, ClientGone, and as 400 what a search cannot meet.
        """
        try:
            async with asyncio.timeout(seconds or self.settings.limits.seconds):
                return await while_connected(http.receive, work)
        except TimeoutError:
            raise self.too_slow(seconds) from None
        except SearchError as error:
            raise unsearchable(error) from None

    def too_slow(self, seconds: float | None = None) -> Refusal:
        seconds = seconds or self.settings.limits.seconds
        return Refusal(
            "too_slow",
            f"This took longer than {seconds:g} seconds and was stopped. Send less at once.",
            seconds=seconds,
        )

    async def choose(
        self,
        runs: Sequence[Served],
        texts: Sequence[str],
        client: str,
        source: str,
        target: str | None,
    ) -> list[tuple[Served, DetectedLanguage | None]]:
        """The run for each text, and the language that was detected, as ``Catalogue.choose``.
        Raises Refusal 400."""
        choices = (self.catalogue.choose(runs, one, source, target) for one in texts)
        if source != AUTO:  # nothing to detect
            return list(choices)
        return await self.texts.all(client, choices)

    async def written(self, client: str, make: Callable[[], BaseModel]) -> bytes:
        """An answer, made and written beside the event loop."""
        return await self.texts.do(client, lambda: written(make()))


def _stranger(http: Request) -> Client:
    """Who asks, as long as no key is known."""
    return Client(address_of(http))


def _size(http: Request, model: type[BaseModel], limits: LimitSettings) -> int:
    """Bytes that a body may have: as its header says, unless it comes in chunks (RFC 9112, section
    6.3), and at most what the endpoint takes."""
    most = model.most_bytes(limits) if issubclass(model, WithFiles) else limits.body_bytes
    told = http.headers.get("content-length", "")
    return int(told) if told.isdecimal() and "transfer-encoding" not in http.headers else most


def _invalid(error: ValidationError) -> Refusal:
    problem = error.errors()[0]
    if problem["type"] == "missing":
        return missing_field(".".join(map(str, problem["loc"])))
    return bad_field(error, "Invalid request: ")


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

    def asks(self, kind: type[ServedRun], summary: str) -> Callable[[Work[Body]], Work[Body]]:
        """As ``answers``, where runs of a kind are asked."""
        path = kind.path.removeprefix(self.prefix)
        return self.answers(path, kind.sent, kind.gives, summary)

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
