"""The endpoints of a language model: a text gone on with, its surprises, what else could come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.plural import plural
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.cost import ON_TORCH
from dragoman.serving.http.openapi import REFUSALS, body_of, json_response, written
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.http.stream import event, event_of, event_stream, until
from dragoman.serving.queue.queue import Answer
from dragoman.serving.served import ServedRun
from dragoman.serving.service import Service
from dragoman.serving.write.composer import Composer, Place, told
from dragoman.serving.write.schema import (
    ContinuationsAnswer,
    ContinuationsRequest,
    Surprise,
    SurpriseAnswer,
    SurpriseRequest,
    WriteAnswer,
    WriteRequest,
)
from dragoman.tasks.language_model.generation import Growth


def router(service: Service) -> APIRouter:
    """The endpoints over one server."""
    routes = APIRouter(prefix="/v1", tags=["dragoman"])

    @routes.post(
        "/write",
        summary="Go on with a text",
        responses={
            200: {
                "model": WriteAnswer,
                "description": "The text; with `stream` the events start, text, done and error",
                "content": {"text/event-stream": {}},
            },
            **REFUSALS,
        },
        openapi_extra=body_of(WriteRequest),
    )
    async def write(http: Request) -> Response:
        """By a language model: drawn with temperature, top-k, top-p and seed, or the most probable;
        how much each word surprised the model comes with it.

        With `stream` the answer is server-sent events: `start` (the beginning as the vocabulary
        knows it, and its tokens), `text` (what is added, and the words that are new or have grown:
        they take the places from `first` on), `done` (why it ended), or `error`. Whoever has read
        enough closes the connection, and nothing more is written.
        """
        async with AsyncExitStack() as held:
            request, client = await held.enter_async_context(service.receive(http, WriteRequest))
            service.check_texts([request.text, *request.stop], client)
            run, composer = service.catalogue.writer(request.run)
            most = service.settings.limits.written
            growth = await service.texts.do(client, partial(composer.growth, request, most))
            rows = run.engine.search_settings.beam if request.likeliest else 1
            wide = plural(rows, "hypothesis", "hypotheses")
            run.check_tokens(
                rows * request.longest,
                ON_TORCH,
                "writing",
                f"{plural(request.longest, 'token')} with {wide}",
                "Ask for fewer tokens (longest), and go on from what you get.",
            )
            if request.stream:
                parts = _events(service, run, composer, growth, client)
                leave = held.pop_all().aclose
                return event_stream(
                    parts, leave, 2 * service.settings.limits.seconds, service.too_slow()
                )
            work = _whole(service, run, composer, growth, client)
            return json_response(await service.finish(http, work))

    @routes.post(
        "/surprise",
        summary="How much each word of a text surprises a language model",
        responses={200: {"model": SurpriseAnswer}, **REFUSALS},
        openapi_extra=body_of(SurpriseRequest),
    )
    async def surprise(http: Request) -> Response:
        """In bits: one more is half as likely. A long text is read in windows that overlap."""
        async with service.receive(http, SurpriseRequest) as (request, client):
            texts = [request.text] if isinstance(request.text, str) else request.text
            service.check_texts(texts, client)
            run, composer = service.catalogue.writer(request.run)
            return json_response(
                await service.finish(http, _surprises(service, run, composer, texts, client))
            )

    @routes.post(
        "/continuations",
        summary="What could come in a text",
        responses={200: {"model": ContinuationsAnswer}, **REFUSALS},
        openapi_extra=body_of(ContinuationsRequest),
    )
    async def continuations(http: Request) -> Response:
        """The most probable words after a text, or in place of one of its words, with how the model
        would go on from each."""
        async with service.receive(http, ContinuationsRequest) as (request, client):
            service.check_texts([request.text], client)
            run, composer = service.catalogue.writer(request.run)
            most = min(service.settings.limits.beam, service.settings.rows)
            if request.count > most:
                raise Refusal(
                    "too_many_choices",
                    f"count: {request.count} were asked for; this server gives {most} at most.",
                    asked=request.count,
                    most=most,
                )
            return json_response(
                await service.finish(http, _continuations(service, run, composer, request, client))
            )

    return routes


async def _grown(
    service: Service,
    run: ServedRun,
    growth: Growth,
    client: str,
    tell: Callable[[Growth, str], bytes],
) -> AsyncGenerator[bytes, None]:
    """What is told of all that is new of a text, until it has ended. Closing it gives its place in
    the queue back."""

    def taken(found: Hypothesis, is_last: bool) -> bytes:
        text = growth.take(found, is_last)
        return tell(growth, text) if text else b""

    while (request := await service.texts.do(client, growth.next)) is not None:
        async with aclosing(run.queue.watch([request], client)) as watched:
            async for (news,) in watched:
                is_last = isinstance(news, Answer)
                if is_last or growth.grows:
                    found = news.hypotheses[0] if isinstance(news, Answer) else news.hypothesis
                    yield await service.texts.do(client, partial(taken, found, is_last))
                if growth.ending is not None:
                    break


def _rest(growth: Growth) -> bytes:
    """What was held back to the end."""
    text = growth.rest()
    return _text(growth, text) if text else b""


def _text(growth: Growth, text: str) -> bytes:
    first, words = growth.words()
    shown = [told(word).model_dump(exclude_none=True) for word in words]
    return event_of("text", {"text": text, "first": first, "words": shown})


async def _events(
    service: Service, run: ServedRun, composer: Composer, growth: Growth, client: str
) -> AsyncGenerator[bytes, None]:
    """A text that grows."""
    began = time.monotonic()
    deadline = asyncio.get_running_loop().time() + service.settings.limits.seconds
    yield await service.texts.do(client, partial(_start, run, composer, growth))
    parts = _grown(service, run, growth, client, _text)
    async with aclosing(until(deadline, parts)) as grown:
        async for some in grown:
            if some:
                yield some
    if some := await service.texts.do(client, partial(_rest, growth)):
        yield some
    service.meters.count_characters(run.name, client, len(growth.text))
    done = {"ending": growth.ending, "written": len(growth.tokens) - growth.given}
    yield event_of("done", {**done, "seconds": round(time.monotonic() - began, 4)})


def _start(run: ServedRun, composer: Composer, growth: Growth) -> bytes:
    told = _answer(run, composer, growth)
    return event("start", told.model_dump_json(include={"run", "begin", "given", "context"}))


async def _whole(
    service: Service, run: ServedRun, composer: Composer, growth: Growth, client: str
) -> bytes:
    """The text when it has ended, as JSON."""
    async with aclosing(_grown(service, run, growth, client, lambda *_: b"")) as grown:
        async for _ in grown:
            pass
    service.meters.count_characters(run.name, client, len(growth.text))

    def answer() -> bytes:
        growth.rest()
        return written(_answer(run, composer, growth))

    return await service.texts.do(client, answer)


def _answer(run: ServedRun, composer: Composer, growth: Growth) -> WriteAnswer:
    _, words = growth.words() if growth.ending else (0, [])
    return WriteAnswer(
        run=run.name,
        begin=growth.begin,
        text=growth.text[len(growth.begin) :],
        ending=growth.ending or "longest",
        given=growth.given,
        written=len(growth.tokens) - growth.given,
        context=composer.context,
        words=[told(word) for word in words],
    )


async def _surprises(
    service: Service, run: ServedRun, composer: Composer, texts: list[str], client: str
) -> bytes:
    found: list[Surprise] = []
    for text in texts:
        tokens = await service.texts.do(client, partial(composer.tokens, text))
        parts = await composer.reading.all(client, composer.parts(tokens))
        costs = [cost for part in parts for cost in part]
        work = partial(composer.surprise, text, tokens, costs)
        found.append(await service.texts.do(client, work))
    service.meters.count_characters(run.name, client, sum(map(len, texts)))
    answer = SurpriseAnswer(run=run.name, texts=found)
    return await service.texts.do(client, partial(written, answer))


async def _continuations(
    service: Service,
    run: ServedRun,
    composer: Composer,
    request: ContinuationsRequest,
    client: str,
) -> bytes:
    place = await service.texts.do(client, partial(composer.place, request))
    (found,) = await run.queue.search([place.request], client)
    service.meters.count_characters(run.name, client, len(request.text))

    def answer(place: Place) -> bytes:
        continuations = composer.continuations(place, found)
        return written(
            ContinuationsAnswer(run=run.name, begin=place.begin, continuations=continuations)
        )

    return await service.texts.do(client, partial(answer, place))
