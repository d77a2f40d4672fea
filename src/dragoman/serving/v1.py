"""Our own interface: translations with all that the model can tell of them, streamed if wanted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from importlib.metadata import version

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.errors import SearchError
from dragoman.serving import schema
from dragoman.serving.catalogue import Choice
from dragoman.serving.languages import name_of
from dragoman.serving.middleware import FAILED
from dragoman.serving.openapi import REFUSALS, answer, body_of
from dragoman.serving.refusals import Refusal, bad_request
from dragoman.serving.served import Draft, Wish
from dragoman.serving.service import Service
from dragoman.serving.stream import EventStream, event, event_of, until

logger = logging.getLogger("dragoman")


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
                    source=run.source,
                    target=run.target,
                    source_name=name_of(run.source),
                    target_name=name_of(run.target),
                    precision=run.engine.precision,
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
                "sentence, done and error",
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
        `sentence` (a sentence that is done), `done`, or `error`.
        """
        async with AsyncExitStack() as held:
            request, client = await held.enter_async_context(
                service.receive(http, schema.TranslateRequest)
            )
            texts = [request.text] if isinstance(request.text, str) else request.text
            service.check_texts(texts, client)
            choices = [
                service.catalogue.choose(text, request.source, request.target, request.run)
                for text in texts
            ]
            wishes = {choice.run.name: choice.run.wish(request) for choice in choices}
            if request.stream:
                if len(texts) != 1:
                    raise bad_request(
                        "A stream translates one text; its sentences come as they go."
                    )
                choice, leave = choices[0], held.pop_all().aclose
                parts = _events(service, choice, texts[0], wishes[choice.run.name], client)
                return EventStream(parts, leave, 2 * service.settings.limits.seconds)
            work = _translate(service, choices, texts, wishes, client)
            return answer(await service.finish(http, work))

    return routes


async def _translate(
    service: Service, choices: list[Choice], texts: list[str], wishes: dict[str, Wish], client: str
) -> schema.TranslateAnswer:
    found = await service.translate(choices, texts, wishes, client)
    return schema.TranslateAnswer(
        translations=[
            choice.run.translation(passage, hypotheses, choice.detected)
            for choice, (passage, hypotheses) in zip(choices, found, strict=True)
        ]
    )


async def _events(
    service: Service, choice: Choice, text: str, wish: Wish, client: str
) -> AsyncGenerator[bytes, None]:
    """A translation as events. Every end but a client's leaving is told by an event."""
    run, began = choice.run, time.monotonic()
    deadline = asyncio.get_running_loop().time() + service.settings.limits.seconds
    try:
        passages = await run.cut([text], wish)
        start = schema.Translation(
            text="",
            source=run.source,
            target=run.target,
            run=run.name,
            detected=choice.detected,
            before=passages[0].before,
            sentences=[run.sentence(piece, []) for piece in passages[0].pieces],
        )
        yield event("start", start.model_dump_json(exclude_none=True))
        async with aclosing(until(deadline, run.watch(passages, wish, client))) as watched:
            async for news in watched:
                if isinstance(news, Draft):
                    told = event_of("draft", {"sentence": news.sentence, "text": news.draft})
                else:
                    done = run.sentence(passages[0].pieces[news.sentence], news.hypotheses)
                    hypotheses = [h.model_dump(mode="json") for h in done.hypotheses]
                    of_one = {"sentence": news.sentence, "hypotheses": hypotheses}
                    told = event_of("sentence", of_one)
                yield told
        service.meters.count_characters(run.name, client, len(text))
        yield event_of("done", {"seconds": round(time.monotonic() - began, 4)})
    except TimeoutError:
        yield event_of("error", {"error": service.too_slow().message})
    except Refusal as refusal:
        yield event_of("error", {"error": refusal.message})
    except SearchError as error:
        yield event_of("error", {"error": str(error)})
    except Exception:  # the status is sent already: say it in the stream
        logger.exception("a stream failed")
        yield event_of("error", {"error": FAILED})
