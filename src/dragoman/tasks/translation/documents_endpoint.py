"""Translates documents through the interface of LibreTranslate: ``/translate_file`` and
``/download_file``.

A process of its own reads and writes each document (``serving/service/document_pool.py``). It is
translated as on the command line (``documents/translation.py``), with its sentences in the queue
that all clients share, so that other clients do not wait for the whole document. The content stays
in memory and is never logged.

A translation is kept in memory under a name that nobody can guess. It is deleted after the
download, after ten minutes, and when the server stops. If the store is full, the client that holds
the most bytes loses its oldest document, so a client that fills it displaces only its own.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar
from urllib.parse import quote

from fastapi import Request
from pydantic import ConfigDict
from starlette.background import BackgroundTask
from starlette.responses import Response

from dragoman.base.errors import DragomanError
from dragoman.documents.translation import ToAlign, ToSearch, steps
from dragoman.engine.predictor import parts
from dragoman.formats.catalogue import FORMATS
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.connection import PARTS, media_type
from dragoman.serving.http.limits import LimitSettings, Places, check_marks
from dragoman.serving.http.messages import REFUSALS, Message, error_of, json_of, json_response
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.http.stream import EventStream, event_of
from dragoman.serving.http.uploads import FIELDS_BYTES, WithFiles
from dragoman.serving.operate.middleware import DOWNLOADS, HEAD
from dragoman.serving.service.catalogue import AUTO
from dragoman.serving.service.document_pool import ReadDocument
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.service import Service
from dragoman.sources.shared.files import InMemory
from dragoman.tasks.translation.proofreading.plain import PlainCheck
from dragoman.tasks.translation.served import ServedTranslator


class DocumentRequest(WithFiles):
    """A request to translate a document: `POST /translate_file`, a form. Unknown fields are
    ignored."""

    model_config = ConfigDict(extra="ignore")
    takes_one: ClassVar[bool] = True

    source: str
    """The language of the document as a code, or `auto` to detect it."""
    target: str
    """The target language as a code."""
    columns: str | None = None
    """The columns of a table (CSV or TSV) to translate, separated by commas: names in the first
    row, such as "text,note", or numbers, such as "2,3". Default: all columns."""
    stream: bool = False
    """Answer with server-sent events, which report the progress."""

    @classmethod
    def most_bytes(cls, limits: LimitSettings) -> int:
        return max(limits.body_bytes, limits.file_bytes + FIELDS_BYTES)


class TranslatedFile(Message):
    """The address of a translated document."""

    translatedFileUrl: str
    """The address from which the document can be downloaded once, within ten minutes."""
    warnings: list[str] | None = None
    """The doubts about the translation, as English sentences: the document states another language,
    texts are in another language, or placeholders or addresses are missing. Absent if there are
    none."""


SECONDS = 600.0
"""The seconds for which a translated document is kept."""


@dataclass(frozen=True)
class KeptDocument:
    """A translated document, kept for its download."""

    client: str
    name: str
    media: str
    data: bytes
    until: float


class KeptDocuments:
    """The translated documents that wait for their download. The object may be used only in the
    event loop."""

    def __init__(self, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._kept: OrderedDict[str, KeptDocument] = OrderedDict()

    def keep(self, client: str, name: str, media: str, data: bytes) -> str:
        """Keep a translated document, and return its key. ``data`` must not exceed the size of the
        store."""
        self.forget_old()
        key = secrets.token_urlsafe(24)
        self._kept[key] = KeptDocument(client, name, media, data, self._clock() + SECONDS)
        held = Counter[str]()
        for document in self._kept.values():
            held[document.client] += len(document.data)
        while held.total() > self._most_bytes:
            old_keys = (old for old in self._kept if old != key)
            # The first of equals, which is the oldest.
            oldest = max(old_keys, key=lambda old: held[self._kept[old].client])
            gone = self._kept.pop(oldest)
            held[gone.client] -= len(gone.data)
        return key

    def get(self, key: str) -> KeptDocument:
        """Return the document with this key. Raises Refusal 404."""
        self.forget_old()
        if key not in self._kept:
            raise Refusal(
                "no_such_document",
                "There is no such document. It was already downloaded, is older than ten minutes, "
                "or was removed to make room for others. Translate it again.",
            )
        return self._kept[key]

    def forget(self, key: str) -> None:
        """Delete a document that was downloaded."""
        self._kept.pop(key, None)

    def forget_old(self) -> None:
        """Delete the documents that were not downloaded in time."""
        now = self._clock()
        while self._kept and next(iter(self._kept.values())).until <= now:
            self._kept.popitem(last=False)


PATH = "/translate_file"
SENTENCES = 128
"""The most sentences of one document that wait in the queue at the same time."""
_SAMPLE = 2000
"""The most characters from which the language of a document is identified."""


def endpoints(service: Service) -> Endpoints:
    """Make the document endpoints of one server."""
    routes = Endpoints(service, "", "LibreTranslate")
    routes.files[PATH] = DocumentRequest.most_bytes(service.settings.limits)
    kept = KeptDocuments(service.settings.limits.files_kept)
    under_way = Places("documents", service.settings.limits.files)

    @routes.post(
        PATH,
        summary="Translate a document",
        responses={200: {"model": TranslatedFile}, **REFUSALS},
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {PARTS: {"schema": DocumentRequest.form()}},
            }
        },
    )
    async def translate_file(http: Request) -> Response:
        """The document is the field `file` of a form: Word, PowerPoint, Excel, OpenDocument, HTML,
        Markdown, message catalogues, subtitles and more. The format is detected from the content.
        Only the text changes. With `stream`, the answer is server-sent events: `progress`, with the
        number of translated texts (`done`) and the total (`of`), and at the end `done`, with the
        address."""
        if media_type(http) != PARTS:
            problem = "Send a document as multipart/form-data, in the field file"
            raise Refusal("bad_form", f"{problem}.", problem=problem)
        async with AsyncExitStack() as held:
            received = service.receive(http, DocumentRequest)
            request, client = await held.enter_async_context(received)
            held.enter_context(under_way.occupy(client, 1))
            work = _Work(service, kept, client, str(http.base_url).rstrip("/"))
            if not request.uploads:
                raise Refusal("missing_field", field="file")
            document, seconds = request.uploads[0].read(), service.settings.limits.file_seconds
            if request.stream:
                events = work.events(document, request)
                return EventStream(events, held.pop_all().aclose, seconds)
            answer = await service.finish(http, work.address(document, request), seconds)
            return json_response(json_of(answer))

    @routes.get(
        DOWNLOADS + "{key}/{name}",
        summary="Download a translated document",
        response_class=Response,
        responses={404: error_of("The document is no longer stored")},
    )
    async def download_file(key: str, name: str, http: Request) -> Response:
        """Returns a translated document. It is deleted after the download, after ten minutes, or
        earlier if there is no room left and the documents of this client need the most room."""
        service.count(http)
        document = kept.get(key)
        headers = {
            "content-disposition": f"attachment; filename*=UTF-8''{quote(document.name)}",
            "cache-control": "no-store",
        }
        gone = None if HEAD in http.scope else BackgroundTask(kept.forget, key)
        return Response(document.data, media_type=document.media, headers=headers, background=gone)

    return routes


@dataclass(frozen=True)
class _Work:
    """The translation of one document for one client."""

    service: Service
    kept: KeptDocuments
    client: str
    base: str

    async def address(self, document: InMemory, request: DocumentRequest) -> TranslatedFile:
        """Translate the document, and return the address of the translation."""
        last = [part async for part in self._parts(document, request)][-1]
        assert isinstance(last, TranslatedFile), "it comes last"
        return last

    async def events(
        self, document: InMemory, request: DocumentRequest
    ) -> AsyncGenerator[bytes, None]:
        """Translate the document, and yield events that report the progress, and at the end the
        address."""
        async with aclosing(self._parts(document, request)) as news:
            async for part in news:
                if isinstance(part, TranslatedFile):
                    yield event_of("done", part.model_dump(exclude_defaults=True))
                else:
                    done, of = part
                    yield event_of("progress", {"done": done, "of": of})

    async def _parts(
        self, document: InMemory, request: DocumentRequest
    ) -> AsyncGenerator[tuple[int, int] | TranslatedFile, None]:
        service, client = self.service, self.client
        try:
            most = service.settings.limits.file_characters
            source = None if request.source == AUTO else request.source
            name = document.called
            read = await service.document_workers.read(
                client, document.data, name, most, request.columns, source, request.target
            )
            await self._check(read)
            some = await service.documents.do(client, lambda: list(islice(read.texts(), 50)))
            text = " ".join(some)[:_SAMPLE]
            runs = service.catalogue.every(ServedTranslator, None)
            source = source or read.source or AUTO
            ((run, _),) = await service.choose(runs, [text], client, source, request.target)
            check = PlainCheck(run.source, run.proofs.lexicon)
            yield 0, read.count
            running = steps(read.units(), run.engine)
            answer: Any = None
            while True:
                step = await service.documents.do(client, partial(running.send, answer))
                answer = None
                if isinstance(step, list):
                    break
                if isinstance(step, ToSearch):
                    answer = await self._search(run, step)
                elif isinstance(step, ToAlign):
                    answer = await run.align(step.pairs, client)
                else:
                    yield step, read.count
            most = service.settings.limits.files_kept
            take = partial(check.take_targets, list(read.units()), step)
            await service.documents.do(client, take)
            doubts = [*read.doubts, *map(str, check.doubts)]
            made = await service.document_workers.write(client, read, step, run.target, most)
        except DragomanError as error:
            problem = str(error)
            raise Refusal("bad_document", problem, problem=problem) from None
        service.meters.count_characters(run.name, client, read.characters)
        key = self.kept.keep(client, _translation_name(name, run.target), read.media, made)
        asyncio.get_running_loop().call_later(610, self.kept.forget_old)
        url = f"{self.base}{DOWNLOADS}{key}/{quote(_translation_name(name, run.target))}"
        yield TranslatedFile(translatedFileUrl=url, warnings=doubts or None)

    async def _check(self, read: ReadDocument) -> None:
        service, most = self.service, self.service.settings.limits.file_characters
        if read.characters > most:
            raise Refusal(
                "text_too_long",
                f"The document has {read.characters:,} characters of text; this server takes "
                f"{most:,} at once. Send it in parts.",
                characters=read.characters,
                most=most,
            )
        checked = map(check_marks, ([text] for text in read.texts()))
        await service.documents.all(self.client, checked)

    async def _search(self, run: ServedTranslator, step: ToSearch) -> list[Hypothesis]:
        """Search for the translation of each piece, in batches, because clients share the queue."""
        settings = run.engine.search_settings
        requests = await self.service.documents.do(
            self.client, lambda: run.engine.requests(step.passages, settings)
        )
        hypotheses: list[Hypothesis] = []
        for some in parts(requests, SENTENCES):
            hypotheses += [best for best, *_ in await run.queue.search(some, self.client)]
        return hypotheses


def _translation_name(name: str, language: str) -> str:
    stem, dot, ending = name.rpartition(".")
    return f"{stem}_{language}{dot}{ending}" if stem else f"{name}_{language}"


SUPPORTED = sorted(ending for kind in FORMATS.values() for ending in kind.endings)
"""The file endings of the supported document formats."""
