"""Our own interface: translations with all that the model can tell of them, streamed if wanted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.forms.languages import name_of
from dragoman.forms.passage import Passage, Piece
from dragoman.serving import schema
from dragoman.serving.catalogue import ChosenRun
from dragoman.serving.http.openapi import REFUSALS, body_of, json_response
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.http.stream import event, event_of, event_stream, json_stream, until
from dragoman.serving.queue.queue import Answer, Draft
from dragoman.serving.served import ServedRun, TranslationOptions
from dragoman.serving.service import Service
from dragoman.serving.translate.answer import (
    hypothesis_message,
    sentence_message,
    texts_of,
    translation_message,
)
from dragoman.tasks.translation.proofreading.proofreader import Proof


def router(service: Service) -> APIRouter:
    """The endpoints under ``/v1`` over one server."""
    routes = APIRouter(prefix="/v1", tags=["dragoman"])

    @routes.get("/info", summary="What this server has and allows")
    async def info() -> schema.ServerInfo:
        """The runs with their languages, and the limits of a request."""
        limits = service.settings.limits
        return schema.ServerInfo(
            version=version("dragoman"),
            runs=[
                schema.RunInfo(
                    name=run.name,
                    task=run.task,
                    look=run.can_be_looked_into,
                    source=run.source,
                    target=run.target,
                    source_name=name_of(run.source),
                    target_name=name_of(run.target),
                    precision=run.engine.description,
                    knows=run.knowledge,
                )
                for run in service.catalogue.runs
            ],
            key_required=service.keys.required,
            characters=limits.characters,
            items=limits.items,
        )

    @routes.post(
        "/translate",
        summary="Translate, and tell what the model knows of its translation",
        responses={
            200: {
                "model": schema.TranslateAnswer,
                "description": "The translations; with `stream` the events start, draft, "
                "sentence, warnings, done and error",
                "content": {"text/event-stream": {}},
            },
            **REFUSALS,
        },
        openapi_extra=body_of(schema.TranslateRequest),
    )
    async def translate(http: Request) -> Response:
        """Scores, the probability of every token and word, n-best lists, forced beginnings,
        sampling.

        With `stream` the answer is server-sent events: `start` (the texts as they are cut into
        sentences), `draft` (a sentence as it grows: with a beam it may change until it is done),
        `sentence` (a sentence that is done), `warnings` (if asked for: what is doubtful about the
        best translation of a sentence, and its words with where they come from), `done`, or
        `error`.
        """
        async with AsyncExitStack() as held:
            request, client = await held.enter_async_context(
                service.receive(http, schema.TranslateRequest)
            )
            texts = [request.text] if isinstance(request.text, str) else request.text
            service.check_texts(texts, client)
            service.check_texts([request.prefix], client)
            choices = await service.choose(
                texts, client, source=request.source, target=request.target, run=request.run
            )
            if request.prefix:  # which is to be cut into tokens
                options = await service.texts.do(client, partial(_options_by_run, choices, request))
            else:
                options = _options_by_run(choices, request)
            seconds = 2 * service.settings.limits.seconds
            if request.stream:
                if len(texts) != 1:
                    raise Refusal(
                        "one_text_streamed",
                        "A stream translates one text; its sentences come as they go.",
                        texts=len(texts),
                    )
                choice, leave = choices[0], held.pop_all().aclose
                parts = _events(
                    service, choice, texts[0], options[choice.run.name], client, request.warnings
                )
                return event_stream(parts, leave, seconds, service.too_slow())
            answer = _translate(service, choices, texts, options, client, request.warnings)
            first = await service.finish(http, _first_of(answer))
            if first.is_last:
                await answer.aclose()
                return json_response(first.written)
            leave = held.pop_all().aclose
            return json_stream(_after(first, answer), leave, seconds)

    return routes


@dataclass(frozen=True)
class _Part:
    """A part of an answer."""

    written: bytes
    is_last: bool


def _options_by_run(
    choices: Sequence[ChosenRun], request: schema.TranslateRequest
) -> dict[str, TranslationOptions]:
    return {choice.run.name: choice.run.options(request) for choice in choices}


async def _translate(
    service: Service,
    choices: list[ChosenRun],
    texts: list[str],
    options: dict[str, TranslationOptions],
    client: str,
    warnings: bool,
) -> AsyncGenerator[_Part, None]:
    """The translations as JSON; all of it at once unless it is long."""
    found = await service.translate(choices, texts, options, client, warnings=warnings)
    proofs: list[list[Proof] | None] = [None] * len(texts)
    if warnings:
        for number, (choice, (passage, hypotheses)) in enumerate(zip(choices, found, strict=True)):
            best = [some[0] for some in hypotheses]
            pairs = list(zip(passage.pieces, best, strict=True))
            proofs[number] = await choice.run.proofs(pairs, client)

    def parts() -> Iterator[bytes]:
        yield b'{"translations":['
        for number, (choice, (passage, hypotheses)) in enumerate(zip(choices, found, strict=True)):
            yield b"," if number else b""
            run = choice.run
            head = run.head(passage, choice.detected)
            yield from translation_message(
                head, run.engine.target, passage, hypotheses, proofs[number]
            )
        yield b"]}"

    async for some, is_last in service.texts.each(client, parts()):
        yield _Part(b"".join(some), is_last)


async def _first_of(parts: AsyncGenerator[_Part, None]) -> _Part:
    return await anext(parts)


async def _after(first: _Part, rest: AsyncGenerator[_Part, None]) -> AsyncGenerator[bytes, None]:
    yield first.written
    async with aclosing(rest):
        async for part in rest:
            yield part.written


async def _events(
    service: Service,
    choice: ChosenRun,
    text: str,
    options: TranslationOptions,
    client: str,
    warnings: bool,
) -> AsyncGenerator[bytes, None]:
    """A translation as events."""
    run, began = choice.run, time.monotonic()
    reading: list[asyncio.Task[bytes]] = []
    deadline = asyncio.get_running_loop().time() + service.settings.limits.seconds
    try:
        (passage,) = await service.texts.do(client, partial(run.cut, [text], options))
        if warnings:
            run.check_warnings([passage])
        yield await service.texts.do(client, partial(_start, choice, passage))
        async with aclosing(until(deadline, run.watch(passage, options, client))) as watched:
            async for news in watched:
                told = (_told(run, passage.pieces[one.number], one) for one in news)
                async for some, _ in service.texts.each(client, told):
                    yield b"".join(some)
                if warnings:
                    reading += [
                        asyncio.create_task(
                            _proof(service, run, passage.pieces[one.number], one, client)
                        )
                        for one in news
                        if isinstance(one, Answer)
                    ]
                while reading and reading[0].done():
                    yield await reading.pop(0)
        async with asyncio.timeout_at(deadline):
            proofs = await asyncio.gather(*reading)
        for proof in proofs:
            yield proof
        service.meters.count_characters(run.name, client, len(text))
        yield event_of("done", {"seconds": round(time.monotonic() - began, 4)})
    finally:
        for task in reading:
            task.cancel()


def _start(choice: ChosenRun, passage: Passage) -> bytes:
    """The event that tells how a text was cut."""
    target = choice.run.engine.target
    sentences = [sentence_message(target, piece, []) for piece in passage.pieces]
    start = choice.run.head(passage, choice.detected).model_copy(update={"sentences": sentences})
    return event("start", start.model_dump_json(exclude_none=True))


def _told(run: ServedRun, piece: Piece, news: Draft | Answer) -> bytes:
    """The event that tells how a sentence stands."""
    if isinstance(news, Draft):
        (text,) = texts_of(run.engine.target, [news.hypothesis])
        return event_of("draft", {"sentence": news.number, "text": text})
    hypotheses = sentence_message(run.engine.target, piece, news.hypotheses).hypotheses
    dumped = [one.model_dump(mode="json", exclude_none=True) for one in hypotheses]
    return event_of("sentence", {"sentence": news.number, "hypotheses": dumped})


async def _proof(
    service: Service, run: ServedRun, piece: Piece, answer: Answer, client: str
) -> bytes:
    """The event that tells what is doubtful about a sentence that is done."""
    best = answer.hypotheses[0]
    (proof,) = await run.proofs([(piece, best)], client)

    def told() -> bytes:
        found = hypothesis_message(run.engine.target, best, proof)
        shown = found.model_dump(mode="json", include={"warnings", "words"})
        return event_of("warnings", {"sentence": answer.number, **shown})

    return await service.texts.do(client, told)
