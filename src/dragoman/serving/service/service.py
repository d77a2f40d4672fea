"""The checks and resources that all endpoints share: clients, their limits, and time limits.

``Service`` holds the parts of one server, and the endpoints call its methods.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from dragoman.base.errors import SearchError
from dragoman.serving.http.clients import ApiKeys, Networks, key_in_header, stranger
from dragoman.serving.http.connection import Sites, read_fields, while_connected
from dragoman.serving.http.limits import Client, Limiter, Places, check_marks
from dragoman.serving.http.messages import Texts, json_of, json_response
from dragoman.serving.http.refusals import Refusal, key_in_header_needed, unsearchable
from dragoman.serving.http.uploads import FIELDS_BYTES, Upload, WithFiles, read_with_files
from dragoman.serving.look.schema import DetectedLanguage
from dragoman.serving.operate.middleware import Meters
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.catalogue import AUTO, Catalogue, Served
from dragoman.serving.service.document_pool import DocumentWorkers
from dragoman.serving.service.served_run import bad_field

TOO_MANY_SECONDS = 1.0
"""The delay, in seconds, of each refusal to a client that sends too many requests. Without it, 60
connections of such a client would keep the event loop busy, and all other clients would have to
wait."""

T = TypeVar("T")
Body = TypeVar("Body", bound=BaseModel)


class Service:
    """The parts of one server. Use it only in the event loop."""

    def __init__(
        self, catalogue: Catalogue, settings: ServeSettings, keys: ApiKeys, meters: Meters
    ) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.keys = keys
        self.meters = meters
        self.limiter = Limiter(settings.limits)
        self.probes = Limiter(settings.limits)
        """The limiter for /health and /ready. Their requests are counted separately, and never
        refused."""
        self.texts = FairExecutor("texts")
        """The thread in which texts are split, decoded and written."""
        self.figures = FairExecutor("figures", of_client=4, of_all=64)
        """The thread in which figures are computed."""
        self.lessons = FairExecutor("lessons", of_client=4, of_all=64)
        """The thread in which lessons are computed: each takes seconds, and figures do not wait."""
        self.documents = FairExecutor("documents")
        """The thread in which the texts of documents are split into sentences and joined again."""
        self.document_workers = DocumentWorkers()
        """The processes in which documents are read and written."""
        held = settings.limits.uploads_held
        self.uploads = Places("uploads", held // 4, held)
        """The memory, in bytes, that large requests occupy."""
        self.strangers = Places("uploads", held // 16, held // 4)
        """The memory of large requests whose client is only known after they have been read."""
        self.operators = Networks(settings.operators)
        self.sites = Sites(settings.host, settings.allowed_host, settings.origins)
        self.under_way: set[object] = set()
        """A mark for each request that has been read and may have chosen a run. After a reload, the
        server closes an old run when all marks from before are gone."""
        self._making = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self.closing = False
        """True while the server is shutting down. It then only finishes accepted requests."""

    @asynccontextmanager
    async def receive(
        self, http: Request, model: type[Body], *, forms: bool = False
    ) -> AsyncIterator[tuple[Body, str]]:
        """Read and check the body of a request. Yields the body and the name of the client; while
        the context lasts, the request counts towards the limits of this client. ``forms``: True if
        the body may also be a form.

        If the client is known before the body is read (by its address, or by a key in the header),
        its limits are checked before that. Otherwise, the key is in the body, and the request
        counts towards the limits of its address until the key has been read. Raises Refusal 400,
        403, 408, 413, 415 or 429.
        """
        with ExitStack() as held:
            client: Client | None = None
            if not self.keys.required or key_in_header(http):
                client = held.enter_context(self.admit(http))
            else:
                self.limiter.take_one(stranger(http))
            limits = self.settings.limits
            size = model.most_bytes(limits) if issubclass(model, WithFiles) else limits.body_bytes
            length = http.headers.get("content-length", "")
            # A body may come in chunks instead (RFC 9112, section 6.3).
            if length.isdecimal() and "transfer-encoding" not in http.headers:
                size = int(length)
            if client is None and size > limits.body_bytes:
                raise key_in_header_needed(limits.body_bytes)
            if size > FIELDS_BYTES:
                pool = self.uploads if client else self.strangers
                held.enter_context(pool.occupy((client or stranger(http)).name, size))
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
        """Find the client of a request, and count the request towards its limits while the context
        lasts. Raises Refusal 403 or 429."""
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
        """Check the web site that sent a request (``Sites.check``). A refused request counts
        towards the rate of its client. Raises Refusal 403, 421 or 429."""
        try:
            self.sites.check(http)
        except Refusal:
            self.count(http)
            raise

    def count(self, http: Request) -> None:
        """Count a request that needs no key, or that is refused. It counts for the holder of its
        key if the key is valid, and otherwise for its address. Raises Refusal 429."""
        client = stranger(http)
        with suppress(Refusal):
            client = self.keys.client(key_in_header(http), client)
        self.limiter.take_one(client)

    async def slow_down(self) -> None:
        """Wait before answering a client that sends too many requests."""
        await asyncio.sleep(TOO_MANY_SECONDS)

    async def count_cheap(self, http: Request, kind: str = "probe") -> None:
        """Count a request that is always answered: a probe, for /health or /ready, or another kind,
        which is counted apart. If a client sends too many, its answers are delayed."""
        try:
            self.probes.take_one(Client(f"{kind} of {stranger(http).name}"))
        except Refusal:
            await self.slow_down()

    async def once(self, name: str, make: Callable[[], T]) -> T:
        """Return the result of ``make``, which is computed in a thread. It is stored under ``name``
        as long as the same runs are served, so it is computed only once."""
        made = self.catalogue.made
        if name not in made:
            async with self._making[name]:  # requests that come meanwhile wait for the same result
                if name not in made:
                    made[name] = await asyncio.to_thread(make)
        result: T = made[name]
        return result

    async def json_once(self, http: Request, make: Callable[[], bytes], name: str = "") -> Response:
        """Return a response with the JSON that ``make`` returns. The method ``once`` computes this
        JSON only once for each path and ``name``."""
        return json_response(await self.once(f"{http.scope['path']} {name}", make))

    def check_texts(self, given: Texts, client: str) -> list[str]:
        """Check the texts of a request, and return them as a list. Raises Refusal 400 for more
        texts or characters than the client may send at once, and for too many combining marks in a
        row."""
        texts = [given] if isinstance(given, str) else given
        limits = self.keys.limits.get(client) or self.settings.limits
        if len(texts) > limits.items:
            raise Refusal("too_many_texts", texts=len(texts), most=limits.items)
        characters = sum(map(len, texts))
        if characters > limits.characters:
            raise Refusal("text_too_long", characters=characters, most=limits.characters)
        check_marks(texts)
        return texts

    def check_operator(self, http: Request) -> None:
        """Check that a request comes from an operator. Raises Refusal 403 for any other address."""
        if http.client is None or http.client.host not in self.operators:
            raise Refusal("operators_only")

    async def _fields(
        self, http: Request, model: type[BaseModel], *, forms: bool
    ) -> tuple[dict[str, Any], list[Upload]]:
        """Read a body within the time limit. Returns its fields, and the files of a form."""
        limits = self.settings.limits
        values = max(limits.values, 4 * limits.items)
        try:
            async with asyncio.timeout(limits.seconds):
                if issubclass(model, WithFiles):
                    return await read_with_files(http, model, limits, values)
                return await read_fields(http, values, forms=forms), []
        except TimeoutError:
            raise Refusal("late_body", seconds=limits.seconds) from None

    async def finish(
        self, http: Request, work: Coroutine[Any, Any, T], seconds: float | None = None
    ) -> T:
        """Do ``work`` while the client is connected, for at most ``seconds`` or, without them, the
        time limit of a request.

        Raises Refusal 504, ClientDisconnect, and Refusal 400 for a search that cannot be done.
        """
        seconds = seconds or self.settings.limits.seconds
        try:
            async with asyncio.timeout(seconds):
                return await while_connected(http.receive, work)
        except TimeoutError:
            raise Refusal("too_slow", seconds=seconds) from None
        except SearchError as error:
            raise unsearchable(error) from None

    async def choose(
        self,
        runs: Sequence[Served],
        texts: Sequence[str],
        client: str,
        source: str,
        target: str | None,
    ) -> list[tuple[Served, DetectedLanguage | None]]:
        """Choose the run for each text, as ``Catalogue.choose`` does. Returns each run with the
        detected language. Raises Refusal 400."""
        choices = (self.catalogue.choose(runs, text, source, target) for text in texts)
        if source != AUTO:  # nothing to detect
            return list(choices)
        return await self.texts.all(client, choices)

    async def encode(self, client: str, make: Callable[[], BaseModel]) -> bytes:
        """Make an answer and encode it as JSON, in a thread outside the event loop."""
        return await self.texts.do(client, lambda: json_of(make()))


def _invalid(error: ValidationError) -> Refusal:
    problem = error.errors()[0]
    if problem["type"] == "missing":
        return Refusal("missing_field", field=".".join(map(str, problem["loc"])))
    return bad_field(error, "Invalid request: ")
