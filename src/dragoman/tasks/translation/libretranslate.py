"""The interface of LibreTranslate, so that its clients work unchanged.

https://docs.libretranslate.com/. It takes JSON and forms; errors are ``{"error": "…"}`` with
additional fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from starlette.responses import Response

from dragoman.documents.placing import Translated, placed, plan_of
from dragoman.formats.html.text import HtmlDocument
from dragoman.formats.units.document import Target, parts_of
from dragoman.forms.languages import name_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.messages import Message, Texts, written
from dragoman.serving.http.refusals import missing_field
from dragoman.serving.look.outputs import DetectedLanguage, texts_of
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.catalogue import detected
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service
from dragoman.tasks.translation.documents_endpoint import SUPPORTED
from dragoman.tasks.translation.served import (
    Choice,
    ServedTranslator,
    TranslationOptions,
    search_texts,
)


def _number(value: object) -> object:
    """Read an empty form field as 0: form fields are strings."""
    return 0 if value == "" else value


class LibreTranslateRequest(BaseModel):
    """``POST /translate``. Unknown keys are ignored, as LibreTranslate does."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    q: Texts
    """Text to translate, or several."""
    source: str = "auto"
    """Language of the text, or "auto"."""
    target: str
    """Language to translate into."""
    format: Literal["text", "html"] = "text"
    """html: tags and nesting are kept, and only text is translated."""
    alternatives: Annotated[int, BeforeValidator(_number)] = Field(default=0, ge=0)
    """How many further translations to give."""
    api_key: str | None = None


class LibreTranslateAnswer(Message):
    """Lists where ``q`` was a list."""

    translatedText: str | list[str]
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    """Only for the source "auto"."""
    alternatives: list[str] | list[list[str]] | None = None
    """Only where some were asked for."""


class DetectLanguageRequest(BaseModel):
    """``POST /detect``."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    q: str
    """Text whose language is asked for."""
    api_key: str | None = None


class Language(Message):
    """A source language and what it can be translated into."""

    code: str
    name: str
    targets: list[str]


class LanguageChoice(Message):
    code: str
    name: str


class LanguagePair(Message):
    source: LanguageChoice
    target: LanguageChoice


class FrontendSettings(Message):
    """What LibreTranslate's clients ask a server about itself."""

    apiKeys: bool
    charLimit: int
    filesTranslation: bool = False
    frontendTimeout: int = 200
    keyRequired: bool
    language: LanguagePair
    suggestions: bool = False
    supportedFilesFormat: list[str] = Field(default=[])


DETECTED = 5
"""The number of guesses that ``/detect`` returns."""


def endpoints(service: Service) -> Endpoints:
    """Make the LibreTranslate endpoints of one server."""
    routes = Endpoints(service, "", "LibreTranslate")

    @routes.answers(
        "/translate",
        LibreTranslateRequest,
        LibreTranslateAnswer,
        "Translate text or HTML",
        form=True,
    )
    async def translate(request: LibreTranslateRequest, client: str) -> bytes:
        """One text or several, plain or HTML. Running text is cut into sentences and joined
        again with its spacing and line breaks."""
        return await _translate(service, request, client)

    @routes.get(
        "/languages",
        summary="List the languages that can be translated",
        responses={200: {"model": list[Language]}},
    )
    async def languages(http: Request) -> Response:
        """Each language and what it can be translated into."""
        service.count(http)
        return await service.rendered(http, lambda: _languages(service.catalogue.translating))

    @routes.answers(
        "/detect",
        DetectLanguageRequest,
        list[DetectedLanguage],
        "Detect the language of a text",
        form=True,
    )
    async def detect(request: DetectLanguageRequest, client: str) -> bytes:
        """The most probable languages, of all that the detector knows."""
        service.check_texts(request.q, client)
        if not request.q.strip():
            raise missing_field("q")
        rank = partial(service.catalogue.detector.rank, request.q)
        ranked = (await service.texts.do(client, rank))[:DETECTED]
        told = [detected(*guess) for guess in ranked]
        return TypeAdapter(list[DetectedLanguage]).dump_json(told)

    @routes.get(
        "/frontend/settings",
        summary="Describe this server to a client",
        responses={200: {"model": FrontendSettings}},
    )
    async def frontend_settings(http: Request) -> Response:
        """Limits, whether a key is needed, and the languages to begin with."""
        service.count(http)
        return await service.rendered(http, lambda: written(told()))

    def told() -> FrontendSettings:
        first, *_ = service.catalogue.translating or service.catalogue.runs
        return FrontendSettings(
            apiKeys=service.keys.required,
            charLimit=service.settings.limits.characters,
            filesTranslation=bool(service.catalogue.translating),
            supportedFilesFormat=SUPPORTED if service.catalogue.translating else [],
            keyRequired=service.keys.required,
            language=LanguagePair(
                source=LanguageChoice(code="auto", name="Auto Detect"),
                target=LanguageChoice(code=first.target, name=name_of(first.target)),
            ),
        )

    return routes


async def _translate(service: Service, request: LibreTranslateRequest, client: str) -> bytes:
    """Translate, and answer with JSON."""
    if not request.q:
        raise missing_field("q")
    texts = service.check_texts(request.q, client)
    runs, ranks = service.catalogue.every(ServedTranslator, None), range(request.alternatives + 1)
    if request.format == "html":
        documents = [HtmlDocument() for _ in texts]
        reading = (document.reading(text) for document, text in zip(documents, texts, strict=True))
        await service.texts.all(client, chain.from_iterable(reading))
        texts = [" ".join(running.text for running in document.texts) for document in documents]
    choices = await service.choose(runs, texts, client, request.source, request.target)
    options = partial(ServedTranslator.alternatives, count=request.alternatives)
    if request.format == "html":
        versions = await _translate_html(service, documents, choices, options, ranks, client)
        return await service.written(client, lambda: _answer(request, choices, versions))
    found = await search_texts(service, choices, texts, options, client)

    def answered() -> Iterator[bytes]:
        every: list[list[str]] = []
        for (run, _), (passage, hypotheses) in zip(choices, found, strict=True):
            every.append([])
            for rank in ranks:
                texts = texts_of(run.engine.target, _of_rank(hypotheses, rank))
                every[-1].append(passage.join(texts))
                yield b""
        yield written(_answer(request, choices, every))

    return b"".join(await service.texts.all(client, answered()))


async def _translate_html(
    service: Service,
    documents: Sequence[HtmlDocument],
    choices: Sequence[Choice],
    options_of: Callable[[ServedTranslator], TranslationOptions],
    ranks: range,
    client: str,
) -> list[list[str]]:
    """Translate documents -> for each one its translation and alternatives."""
    every = [(m, running) for m, document in enumerate(documents) for running in document.texts]
    of_texts, texts = [choices[m] for m, _ in every], [running.text for _, running in every]
    found = await search_texts(service, of_texts, texts, options_of, client)
    versions: list[list[str]] = [[] for _ in documents]
    for rank in ranks:
        translated: list[list[Translated]] = [[] for _ in documents]
        for (m, running), (passage, hypotheses) in zip(every, found, strict=True):
            translated[m].append(Translated(running, passage, _of_rank(hypotheses, rank)))
        for m, document in enumerate(documents):
            targets = await with_tags(choices[m][0], translated[m], service.texts, client)
            parts = [parts_of(target) for target in targets]
            versions[m].append(await service.texts.do(client, partial(document.join, parts)))
    return versions


def _languages(runs: Sequence[ServedRun]) -> bytes:
    """List source languages and their target languages, as JSON."""
    targets: dict[str, list[str]] = {}
    for run in runs:
        of_source = targets.setdefault(run.source, [])
        if run.target not in of_source:
            of_source.append(run.target)
    # LibreTranslate's clients expect the target languages in the list, too.
    for run in runs:
        targets.setdefault(run.target, [])
    return TypeAdapter(list[Language]).dump_json(
        [Language(code=code, name=name_of(code), targets=found) for code, found in targets.items()]
    )


def _of_rank(found: Sequence[Sequence[Hypothesis]], rank: int) -> list[Hypothesis]:
    """Take the hypothesis of a rank for each sentence, or the best if it has fewer."""
    return [n_best[rank if rank < len(n_best) else 0] for n_best in found]


def _answer(
    request: LibreTranslateRequest, choices: list[Choice], versions: list[list[str]]
) -> LibreTranslateAnswer:
    texts = [version[0] for version in versions]
    others = [
        [other for other in dict.fromkeys(version[1:]) if other != version[0]]
        for version in versions
    ]
    languages = [detected for _, detected in choices if detected is not None]
    is_list = isinstance(request.q, list)
    return LibreTranslateAnswer(
        translatedText=texts if is_list else texts[0],
        detectedLanguage=(languages if is_list else languages[0]) if languages else None,
        alternatives=(others if is_list else others[0]) if request.alternatives else None,
    )


async def with_tags(
    run: ServedRun, translated: Sequence[Translated], texts: FairExecutor, client: str
) -> list[Target]:
    """Put the tags of each text into its translation."""
    plans = await texts.all(client, map(plan_of, translated))
    found = iter(await run.align([pair for plan in plans for pair in plan.pairs], client))
    alignments = [[next(found) for _ in plan.pairs] for plan in plans]
    answers = (placed(run.engine, *both) for both in zip(plans, alignments, strict=True))
    return await texts.all(client, answers)
