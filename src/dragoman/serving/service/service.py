"""The checks and resources that all endpoints share: clients, their limits, and time limits.

``Service`` holds the parts of one server; endpoints are thin layers over it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from dragoman.base.errors import SearchError
from dragoman.serving.document_workers.pool import DocumentWorkers
from dragoman.serving.http.clients import ApiKeys, Networks, key_in_header, stranger
from dragoman.serving.http.connection import Sites, read_fields, while_connected
from dragoman.serving.http.limits import Client, Limiter, LimitSettings, Places, check_marks
from dragoman.serving.http.messages import Texts, json_response, written
from dragoman.serving.http.refusals import (
    Refusal,
    key_in_header_needed,
    missing_field,
    unsearchable,
)
from dragoman.serving.http.uploads import FIELDS_BYTES, Upload, WithFiles, read_with_files
from dragoman.serving.look.outputs import DetectedLanguage
from dragoman.serving.operate.meters import Meters
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.catalogue import AUTO, Catalogue, Served
from dragoman.serving.service.served_run import bad_field

TOO_MANY_SECONDS = 1.0
"""The delay of each answer to a client that asks too often. Answered at once, 60 such connections
would occupy the event loop, and all other clients would wait for them."""

T = TypeVar("T")
Body = TypeVar("Body", bound=BaseModel)


class Service:
    """The parts of one server. It belongs to the event loop."""

    def __init__(
        self, catalogue: Catalogue, settings: ServeSettings, keys: ApiKeys, meters: Meters
    ) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.keys = keys
        self.meters = meters
        self.limiter = Limiter(settings.limits)
        self.probes = Limiter(settings.limits)
        """The limiter of /health and /ready, which are never refused."""
        self.texts = FairExecutor("texts")
        """The thread in which text is cut, decoded and written."""
        self.figures = FairExecutor("figures", of_client=4, of_all=64)
        """The thread in which figures are computed."""
        self.documents = FairExecutor("documents")
        """The thread in which texts of documents are cut and put together."""
        self.document_workers = DocumentWorkers()
        """The processes in which documents are read and written."""
        held = settings.limits.uploads_held
        self.uploads = Places("uploads", held // 4, held)
        """The memory, in bytes, that large requests take."""
        self.strangers = Places("uploads", held // 16, held // 4)
        """The memory of large requests whose client is not known before they are read."""
        self.operators = Networks(settings.operators)
        self.sites = Sites(settings.host, settings.allowed_host, settings.origins)
        self.under_way: set[object] = set()
        """A mark for each request that was read and may have chosen a run."""
        self._making = asyncio.Lock()
        self.closing = False
        """True after the server was told to stop; it finishes accepted requests."""

    @asynccontextmanager
    async def receive(
        self, http: Request, model: type[Body], *, forms: bool = False
    ) -> AsyncIterator[tuple[Body, str]]:
        """Read and check the body of a request; yields it with its client's name, within that
        client's limits. ``forms``: the body may be a form too.

        For a client that is known without the body (by its address, or by a key in the header), the
        limits are checked before the body is read. Any other request counts for its address until
        its key is read. Raises Refusal 400, 403, 408, 413, 415 or 429.
        """
        with ExitStack() as held:
            client: Client | None = None
            if not self.keys.required or key_in_header(http):
                client = held.enter_context(self.admit(http))
            else:
                self.limiter.take_one(stranger(http))
            size = _size(http, model, self.settings.limits)
            if client is None and size > self.settings.limits.body_bytes:
                raise key_in_header_needed(self.settings.limits.body_bytes)
            if size > FIELDS_BYTES:
                pool = self.uploads if client else self.strangers
                held.enter_context(pool.held((client or stranger(http)).name, size))
            fields, files = await self._fields(http, model, forms=forms)
            if client is None:
                # From here on the request counts for the holder of its key, if the key is known.
                self.limiter.give_back(stranger(http))
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
        """Admit a request of a client within its limits. Raises Refusal 403 or 429."""
        try:
            client = self.keys.client(key_in_header(http) or key, stranger(http))
        except Refusal:
            self.count(http)
            raise
        http.state.client = client.name
        with self.limiter.admit(client):
            self.meters.count_request(client.name)
            yield client

    async def check_site(self, http: Request) -> None:
        """Check the site of a request; a refusal counts. Raises Refusal 403, 421 or 429."""
        try:
            self.sites.check(http)
        except Refusal:
            self.count(http)
            raise

    def count(self, http: Request) -> None:
        """Count a request that needs no key, or is refused: for the holder of its key if it has a
        valid one, or for its address. Raises Refusal 429."""
        client = stranger(http)
        with suppress(Refusal):
            client = self.keys.client(key_in_header(http), client)
        self.limiter.take_one(client)

    async def slow_down(self) -> None:
        """Delay a client that asks too often."""
        await asyncio.sleep(TOO_MANY_SECONDS)

    async def probed(self, http: Request) -> None:
        """Count a request that is always answered; too many of one client are delayed."""
        try:
            self.probes.take_one(stranger(http))
        except Refusal:
            await self.slow_down()

    async def once(self, name: str, make: Callable[[], T]) -> T:
        """The result of ``make``, computed in a thread, and once for as long as the same runs are
        served. ``name`` identifies it."""
        made = self.catalogue.made
        if name not in made:
            async with self._making:  # requests that come meanwhile wait for the same result
                if name not in made:
                    made[name] = await asyncio.to_thread(make)
        found: T = made[name]
        return found

    async def rendered(self, http: Request, make: Callable[[], bytes], name: str = "") -> Response:
        """A JSON response that is made ``once`` for each path and ``name``."""
        return json_response(await self.once(f"{http.scope['path']} {name}", make))

    def check_texts(self, given: Texts, client: str) -> list[str]:
        """The texts of a request. Raises Refusal 400 for more texts or characters than a client may
        send at once, and for too many combining marks in a row."""
        texts = [given] if isinstance(given, str) else given
        limits = self.keys.limits.get(client) or self.settings.limits
        if len(texts) > limits.items:
            raise Refusal(
                "too_many_texts",
                f"The request has {len(texts):,} texts; this server takes {limits.items:,} at "
                "once. Send them in several requests.",
                texts=len(texts),
                most=limits.items,
            )
        characters = sum(map(len, texts))
        if characters > limits.characters:
            raise Refusal(
                "text_too_long",
                f"The request has {characters:,} characters of text; this server takes "
                f"{limits.characters:,} at once. Send it in parts.",
                characters=characters,
                most=limits.characters,
            )
        check_marks(texts)
        return texts

    def check_operator(self, http: Request) -> None:
        """Raises Refusal 403 for an address that is not an operator's."""
        if http.client is None or http.client.host not in self.operators:
            raise Refusal(
                "operators_only",
                "Only operators of the server may do this. Your address is not in its setting "
                "operators.",
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
                f"The request did not arrive completely within {limits.seconds:g} seconds. Send "
                "it again.",
                seconds=limits.seconds,
            ) from None

    async def finish(
        self, http: Request, work: Coroutine[Any, Any, T], seconds: float | None = None
    ) -> T:
        """Do ``work`` within the time limit of a request, or ``seconds``, while its client is
        connected.

        Raises Refusal 504, ClientGone, and Refusal 400 for a search that cannot be done.
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
        """The run for each text, and the detected language, as ``Catalogue.choose``. Raises Refusal
        400."""
        choices = (self.catalogue.choose(runs, one, source, target) for one in texts)
        if source != AUTO:  # nothing to detect
            return list(choices)
        return await self.texts.all(client, choices)

    async def written(self, client: str, make: Callable[[], BaseModel]) -> bytes:
        """Make and encode an answer outside the event loop."""
        return await self.texts.do(client, lambda: written(make()))


def _size(http: Request, model: type[BaseModel], limits: LimitSettings) -> int:
    """The most bytes that a body may have: by its header, unless it comes in chunks (RFC 9112,
    section 6.3), and at most the limit of the endpoint."""
    most = model.most_bytes(limits) if issubclass(model, WithFiles) else limits.body_bytes
    told = http.headers.get("content-length", "")
    return int(told) if told.isdecimal() and "transfer-encoding" not in http.headers else most


def _invalid(error: ValidationError) -> Refusal:
    problem = error.errors()[0]
    if problem["type"] == "missing":
        return missing_field(".".join(map(str, problem["loc"])))
    return bad_field(error, "Invalid request: ")
