"""The LibreTranslate interface, so that its clients work here as they are.

https://docs.libretranslate.com/. JSON and forms; errors as ``{"error": "…"}``, with more
beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.formats.html.document import HtmlDocument
from dragoman.forms.languages import name_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.serving import schema
from dragoman.serving.catalogue import ChosenRun, detected
from dragoman.serving.http.openapi import REFUSALS, body_of, json_response, written
from dragoman.serving.http.refusals import missing_field
from dragoman.serving.served import ServedRun, TranslationOptions
from dragoman.serving.service import Service
from dragoman.serving.translate.answer import texts_of
from dragoman.serving.translate.tagged import Translated, with_tags

DETECTED = 5
"""How many guesses ``/detect`` gives."""


def router(service: Service) -> APIRouter:
    """The endpoints of LibreTranslate over one server."""
    routes = APIRouter(tags=["LibreTranslate"])

    @routes.post(
        "/translate",
        summary="Translate text or HTML",
        responses={200: {"model": schema.LibreTranslateAnswer}, **REFUSALS},
        openapi_extra=body_of(schema.LibreTranslateRequest, form=True),
    )
    async def translate(http: Request) -> Response:
        """One text or several, plain or HTML. Running text is cut into sentences and joined
        again with its spacing and line breaks."""
        async with service.receive(http, schema.LibreTranslateRequest) as (request, client):
            return json_response(await service.finish(http, _translate(service, request, client)))

    @routes.get(
        "/languages",
        summary="Languages that can be translated",
        responses={200: {"model": list[schema.Language]}},
    )
    async def languages() -> list[schema.Language]:
        """Each language and what it can be translated into."""
        return service.catalogue.languages()

    @routes.post(
        "/detect",
        summary="Detect the language of a text",
        responses={200: {"model": list[schema.DetectedLanguage]}, **REFUSALS},
        openapi_extra=body_of(schema.DetectRequest, form=True),
    )
    async def detect(http: Request) -> list[schema.DetectedLanguage]:
        """The most probable languages, of all that the detector knows."""
        async with service.receive(http, schema.DetectRequest) as (request, client):
            service.check_texts([request.q], client)
            if not request.q.strip():
                raise missing_field("q")
            rank = partial(service.catalogue.detector.rank, request.q)
            ranked = (await service.texts.do(client, rank))[:DETECTED]
            return [detected(guess.language, guess.confidence) for guess in ranked]

    @routes.get("/frontend/settings", summary="What a client should know of this server")
    async def frontend_settings() -> schema.FrontendSettings:
        """Limits, whether a key is needed, and the languages to begin with."""
        first, *_ = service.catalogue.translating or service.catalogue.runs
        return schema.FrontendSettings(
            apiKeys=service.keys.required,
            charLimit=service.settings.limits.characters,
            keyRequired=service.keys.required,
            language=schema.LanguagePair(
                source=schema.LanguageChoice(code="auto", name="Auto Detect"),
                target=schema.LanguageChoice(code=first.target, name=name_of(first.target)),
            ),
        )

    return routes


async def _translate(service: Service, request: schema.LibreTranslateRequest, client: str) -> bytes:
    """The answer as JSON."""
    texts = request.q if isinstance(request.q, list) else [request.q]
    if not texts or (isinstance(request.q, str) and not request.q):
        raise missing_field("q")
    service.check_texts(texts, client)
    of_languages = partial(service.choose, source=request.source, target=request.target)
    ranks = range(request.alternatives + 1)
    if request.format == "html":
        documents = [HtmlDocument() for _ in texts]
        reading = (document.reading(text) for document, text in zip(documents, texts, strict=True))
        await service.texts.all(client, chain.from_iterable(reading))
        inner = [" ".join(running.text for running in document.texts) for document in documents]
        choices = await of_languages(inner, client)
        options = _options_by_run(choices, request.alternatives)
        versions = await _translate_html(service, documents, choices, options, ranks, client)
        return await service.texts.do(client, lambda: written(_answer(request, choices, versions)))
    choices = await of_languages(texts, client)
    options = _options_by_run(choices, request.alternatives)
    found = await service.translate(choices, texts, options, client)

    def answered() -> Iterator[bytes]:
        every: list[list[str]] = []
        for choice, (passage, hypotheses) in zip(choices, found, strict=True):
            every.append([])
            for rank in ranks:
                spoken = texts_of(choice.run.engine.target, _of_rank(hypotheses, rank))
                every[-1].append(passage.join(spoken))
                yield b""
        yield written(_answer(request, choices, every))

    return b"".join(await service.texts.all(client, answered()))


async def _translate_html(
    service: Service,
    documents: Sequence[HtmlDocument],
    choices: Sequence[ChosenRun],
    options: dict[str, TranslationOptions],
    ranks: range,
    client: str,
) -> list[list[str]]:
    """Of each document the translation and its alternatives."""
    every = [(m, running) for m, document in enumerate(documents) for running in document.texts]
    of_texts, texts = [choices[m] for m, _ in every], [running.text for _, running in every]
    found = await service.translate(of_texts, texts, options, client)
    versions: list[list[str]] = [[] for _ in documents]
    for rank in ranks:
        translated: list[list[Translated]] = [[] for _ in documents]
        for (m, running), (passage, hypotheses) in zip(every, found, strict=True):
            translated[m].append(Translated(running, passage, _of_rank(hypotheses, rank)))
        for m, document in enumerate(documents):
            parts = await with_tags(choices[m].run, translated[m], service.texts, client)
            versions[m].append(await service.texts.do(client, partial(document.join, parts)))
    return versions


def _options_by_run(
    choices: Sequence[ChosenRun], alternatives: int
) -> dict[str, TranslationOptions]:
    return {choice.run.name: _options(choice.run, alternatives) for choice in choices}


def _options(run: ServedRun, alternatives: int) -> TranslationOptions:
    run.check_width(1 + alternatives)
    values: dict[str, Any] = run.engine.search_settings.model_dump()
    values |= {"n_best": alternatives + 1, "sampling": None, "alternatives": False}
    values["beam"] = max(values["beam"], alternatives + 1)
    settings = SearchSettings.model_validate(values)
    run.check(settings)
    return TranslationOptions(settings)


def _of_rank(found: Sequence[Sequence[Hypothesis]], rank: int) -> list[Hypothesis]:
    """The hypothesis of a rank for each sentence; the best where there are fewer."""
    return [n_best[rank if rank < len(n_best) else 0] for n_best in found]


def _answer(
    request: schema.LibreTranslateRequest, choices: list[ChosenRun], versions: list[list[str]]
) -> schema.LibreTranslateAnswer:
    texts = [version[0] for version in versions]
    others = [
        [other for other in dict.fromkeys(version[1:]) if other != version[0]]
        for version in versions
    ]
    languages = [choice.detected for choice in choices if choice.detected is not None]
    is_list = isinstance(request.q, list)
    return schema.LibreTranslateAnswer(
        translatedText=texts if is_list else texts[0],
        detectedLanguage=(languages if is_list else languages[0]) if languages else None,
        alternatives=(others if is_list else others[0]) if request.alternatives else None,
    )
