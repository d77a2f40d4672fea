"""The endpoint of a run that parses."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.engine.alignment_head import Alignment
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.openapi import REFUSALS, body_of, json_response, written
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.parse.bracketing import Bracketing, Sentence
from dragoman.serving.parse.schema import ParseAnswer, ParsedSentence, ParseRequest
from dragoman.serving.served import ServedRun
from dragoman.serving.service import Service


def router(service: Service) -> APIRouter:
    """The endpoint over one server."""
    routes = APIRouter(prefix="/v1", tags=["dragoman"])

    @routes.post(
        "/parse",
        summary="The constituency tree of a sentence",
        responses={200: {"model": ParseAnswer}, **REFUSALS},
        openapi_extra=body_of(ParseRequest),
    )
    async def parse(http: Request) -> Response:
        """Each a tree over exactly the words that were given: in brackets, and as lists of its
        words and brackets; with `attention` also where the model looked when it opened each
        bracket."""
        async with service.receive(http, ParseRequest) as (request, client):
            texts = [request.text] if isinstance(request.text, str) else request.text
            service.check_texts(texts, client)
            run, bracketing = service.catalogue.bracketing(request.run)
            settings = bracketing.settings(request)
            run.check(settings)
            _check_count(service, len(texts), settings)
            work = _parsed(service, run, bracketing, texts, settings, request.attention, client)
            return json_response(await service.finish(http, work))

    return routes


def _check_count(service: Service, sentences: int, settings: SearchSettings) -> None:
    most, each = service.settings.limits.translations, settings.n_best
    if sentences * each > most:
        raise Refusal(
            "too_many_trees",
            f"{each} trees of each of {sentences:,} sentences are {sentences * each:,}; this "
            f"server gives {most:,} at once. Ask for fewer, or send fewer sentences.",
            each=each,
            sentences=sentences,
            total=sentences * each,
            most=most,
        )


async def _parsed(
    service: Service,
    run: ServedRun,
    bracketing: Bracketing,
    texts: list[str],
    settings: SearchSettings,
    attention: bool,
    client: str,
) -> bytes:
    sentences = await service.texts.all(client, bracketing.sentences(texts, settings))
    requests = [one.request for one in sentences]
    run.check_searches(requests)
    found = await run.queue.search(requests, client)
    alignments: list[Alignment] | None = None
    if attention:
        asked = zip(sentences, found, strict=True)
        pairs = await service.texts.all(
            client, (bracketing.pair(sentence, best) for sentence, (best, *_) in asked)
        )
        alignments = await run.align(pairs, client)
    service.meters.count_characters(run.name, client, sum(map(len, texts)))
    told = _told(bracketing, sentences, found, alignments)
    every = await service.texts.all(client, told)
    answer = ParseAnswer(run=run.name, sentences=every)
    return await service.texts.do(client, lambda: written(answer))


def _told(
    bracketing: Bracketing,
    sentences: list[Sentence],
    found: list[list[Hypothesis]],
    alignments: list[Alignment] | None,
) -> Iterator[ParsedSentence]:
    for number, (sentence, hypotheses) in enumerate(zip(sentences, found, strict=True)):
        alignment = None if alignments is None else alignments[number]
        yield bracketing.told(sentence, hypotheses, alignment)
