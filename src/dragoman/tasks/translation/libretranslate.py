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

from dragoman.documents.placing import Translated, place_codes
from dragoman.formats.html.document import HtmlDocument
from dragoman.formats.units.document import Target
from dragoman.forms.languages import name_of
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.messages import ApiKey, Message, Texts, json_of
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.schema import DetectedLanguage, texts_of
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.catalogue import language_message
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
    """Return 0 for an empty form field, because form fields are strings; return any other value as
    it is."""
    return 0 if value == "" else value


class LibreTranslateRequest(BaseModel):
    """A request to translate texts: `POST /translate`. Unknown fields are ignored, as by
    LibreTranslate."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    q: Texts
    """The text to translate, or a list of texts."""
    source: str = "auto"
    """The source language as a code, or `auto` to detect it."""
    target: str
    """The target language as a code."""
    format: Literal["text", "html"] = "text"
    """The format of the texts. `html`: tags and their nesting are kept, and only the text between
    them is translated."""
    alternatives: Annotated[int, BeforeValidator(_number)] = Field(default=0, ge=0)
    """The number of additional translations to return."""
    api_key: ApiKey = None


class LibreTranslateAnswer(Message):
    """The translations in the form of LibreTranslate. If `q` was a list, every field is a list."""

    translatedText: str | list[str]
    """The translation of the text, or a list with that of each text."""
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    """The detected source language, if `source` was `auto`. Absent otherwise."""
    alternatives: list[str] | list[list[str]] | None = None
    """The additional translations, if `alternatives` was above 0. Absent otherwise."""


class DetectLanguageRequest(BaseModel):
    """A request to detect the language of a text: `POST /detect`."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    q: str
    """The text whose language is detected."""
    api_key: ApiKey = None


class Language(Message):
    """A language and the languages into which it can be translated."""

    code: str
    """The code of the language, such as `en`."""
    name: str
    """The English name of the language."""
    targets: list[str]
    """The codes of the target languages. Empty for a language that is only a target."""


class LanguageChoice(Message):
    """A language that is selected by default."""

    code: str
    """The code of the language, or `auto`."""
    name: str
    """The English name of the language."""


class LanguagePair(Message):
    """The languages that are selected by default."""

    source: LanguageChoice
    """The source language, which is always `auto`."""
    target: LanguageChoice
    """The target language of the first run."""


class FrontendSettings(Message):
    """The settings of the server in the form of LibreTranslate."""

    apiKeys: bool
    """True if the server uses API keys."""
    charLimit: int
    """The maximum number of characters in one request."""
    filesTranslation: bool = False
    """True if the server translates documents."""
    frontendTimeout: int = 200
    """The time in milliseconds that a page should wait after the last key before it translates."""
    keyRequired: bool
    """True if requests need an API key."""
    language: LanguagePair
    """The languages that are selected by default."""
    suggestions: bool = False
    """True if the server accepts suggested translations. Always false here."""
    supportedFilesFormat: list[str] = Field(default=[])
    """The file name extensions of the supported documents. Empty if no run translates."""


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
        """Accepts a text or a list of texts, plain or HTML. Each text is split into sentences;
        white space and line breaks between them are kept."""
        return await _translate(service, request, client)

    @routes.get(
        "/languages",
        summary="List the languages",
        responses={200: {"model": list[Language]}},
    )
    async def languages(http: Request) -> Response:
        """Returns each language with the languages into which it can be translated."""
        service.count(http)
        return await service.json_once(http, lambda: _languages(service.catalogue.translating))

    @routes.answers(
        "/detect",
        DetectLanguageRequest,
        list[DetectedLanguage],
        "Detect the language of a text",
        form=True,
    )
    async def detect(request: DetectLanguageRequest, client: str) -> bytes:
        """Returns the most probable languages of the text, at most 5, the most probable first."""
        service.check_texts(request.q, client)
        if not request.q.strip():
            raise Refusal("missing_field", field="q")
        rank = partial(service.catalogue.detector.rank, request.q)
        ranked = (await service.texts.do(client, rank))[:DETECTED]
        answer = [language_message(*guess) for guess in ranked]
        return TypeAdapter(list[DetectedLanguage]).dump_json(answer)

    @routes.get(
        "/frontend/settings",
        summary="Get the settings for clients",
        responses={200: {"model": FrontendSettings}},
    )
    async def frontend_settings(http: Request) -> Response:
        """Returns the limits of a request, whether it needs an API key, and the default
        languages."""
        service.count(http)
        return await service.json_once(http, lambda: json_of(client_settings()))

    def client_settings() -> FrontendSettings:
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
    """Translate the texts, and answer with JSON."""
    if not request.q:
        raise Refusal("missing_field", field="q")
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
        return await service.encode(client, lambda: _answer(request, choices, versions))
    results = await search_texts(service, choices, texts, options, client)

    def answer_in_turns() -> Iterator[bytes]:
        every: list[list[str]] = []
        for (run, _), (passage, hypotheses) in zip(choices, results, strict=True):
            every.append([])
            for rank in ranks:
                texts = texts_of(run.engine.target, _of_rank(hypotheses, rank))
                every[-1].append(passage.join(texts))
                yield b""
        yield json_of(_answer(request, choices, every))

    return b"".join(await service.texts.all(client, answer_in_turns()))


async def _translate_html(
    service: Service,
    documents: Sequence[HtmlDocument],
    choices: Sequence[Choice],
    options_of: Callable[[ServedTranslator], TranslationOptions],
    ranks: range,
    client: str,
) -> list[list[str]]:
    """Translate documents. Return, for each document, its translation and its alternatives.
    ``options_of``: the search options for a run; ``ranks``: the places in the n-best lists that are
    wanted, of which 0 is the translation itself."""
    every = [(m, running) for m, document in enumerate(documents) for running in document.texts]
    of_texts, texts = [choices[m] for m, _ in every], [running.text for _, running in every]
    results = await search_texts(service, of_texts, texts, options_of, client)
    versions: list[list[str]] = [[] for _ in documents]
    for rank in ranks:
        translated: list[list[Translated]] = [[] for _ in documents]
        for (m, running), (passage, hypotheses) in zip(every, results, strict=True):
            best, source = _of_rank(hypotheses, rank), choices[m][0].engine.source
            translated[m].append(Translated(running, passage, best, source))
        for m, document in enumerate(documents):
            targets = await with_tags(choices[m][0], translated[m], service.texts, client)
            versions[m].append(await service.texts.do(client, partial(document.join, targets)))
    return versions


def _languages(runs: Sequence[ServedRun]) -> bytes:
    """Return the source languages and their target languages as JSON."""
    targets: dict[str, list[str]] = {}
    for run in runs:
        of_source = targets.setdefault(run.source, [])
        of_source += [code for code in run.targets if code not in of_source]
    # LibreTranslate's clients expect the target languages in the list, too.
    for run in runs:
        for code in run.targets:
            targets.setdefault(code, [])
    return TypeAdapter(list[Language]).dump_json(
        [Language(code=code, name=name_of(code), targets=own) for code, own in targets.items()]
    )


def _of_rank(n_bests: Sequence[Sequence[Hypothesis]], rank: int) -> list[Hypothesis]:
    """Return, for each sentence, the hypothesis at place ``rank`` of its n-best list, or the best
    if the list is shorter."""
    return [n_best[rank if rank < len(n_best) else 0] for n_best in n_bests]


def _answer(
    request: LibreTranslateRequest, choices: list[Choice], versions: list[list[str]]
) -> LibreTranslateAnswer:
    texts = [version[0] for version in versions]
    further = [
        [text for text in dict.fromkeys(version[1:]) if text != version[0]] for version in versions
    ]
    languages = [detected for _, detected in choices if detected is not None]
    is_list = isinstance(request.q, list)
    return LibreTranslateAnswer(
        translatedText=texts if is_list else texts[0],
        detectedLanguage=(languages if is_list else languages[0]) if languages else None,
        alternatives=(further if is_list else further[0]) if request.alternatives else None,
    )


async def with_tags(
    run: ServedRun, translated: Sequence[Translated], texts: FairExecutor, client: str
) -> list[Target]:
    """Put the HTML tags of each text back into its translation. Return the translations with
    tags."""
    pairs = await texts.all(client, (translation.pairs for translation in translated))
    links = iter(await run.align([pair for some in pairs for pair in some], client))
    alignments = [[next(links) for _ in some] for some in pairs]
    answers = (place_codes(run.engine, *both) for both in zip(translated, alignments, strict=True))
    return await texts.all(client, answers)
