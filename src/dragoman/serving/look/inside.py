"""The endpoints that look inside a model: ``/v1/look``, single heads and words of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from inspect import cleandoc
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.serving.catalogue import ChosenRun
from dragoman.serving.http.openapi import REFUSALS, body_of, json_response, written
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.inspector import Asked, Cut
from dragoman.serving.look.schema import (
    AttentionRequest,
    CellAnswer,
    CellRequest,
    HeadsAnswer,
    LookAnswer,
    LookRequest,
    Weights,
    WordAnswer,
    WordRequest,
)
from dragoman.serving.schema import Message
from dragoman.serving.service import Service


def router(service: Service) -> APIRouter:
    """The endpoints over one server."""
    routes = APIRouter(prefix="/v1", tags=["dragoman"])

    async def chosen(request: Asked, client: str) -> tuple[ChosenRun, Cut[Asked]]:
        """The run, and what is looked at: all limits are checked before any work."""
        service.check_texts([request.text], client)
        if request.beam is not None and request.beam > service.settings.limits.beam:
            raise Refusal(
                "beam_too_wide",
                f"The widest beam here is {service.settings.limits.beam}.",
                asked=request.beam,
                most=service.settings.limits.beam,
            )
        (choice,) = await service.choose(
            [request.text], client, source=request.source, target=request.target, run=request.run,
            looking=True,
        )  # fmt: skip
        return choice, await service.texts.do(client, partial(choice.run.look_cut, request))

    async def look(request: LookRequest, client: str) -> bytes:
        """Where every layer and head looked, and what every step of the search chose among; with
        heads switched off or source words hidden on request."""
        choice, cut = await chosen(request, client)
        run, detected = choice.run, choice.detected
        seen = await run.inspector.look(cut.request, cut.ids, client)
        work = partial(run.look_answer, cut, seen, detected)
        return await service.texts.do(client, lambda: written(work()))

    async def attention(request: AttentionRequest, client: str) -> bytes:
        """For texts whose attention is too much for one answer. Say what was looked at as in the
        look, and which head."""
        choice, cut = await chosen(request, client)
        return await choice.run.inspector.attention(cut.request, cut.ids, client)

    async def word(request: WordRequest, client: str) -> bytes:
        """Where it looked in every layer and head, who looked at it, and its rows of numbers from
        the embedding to the last layer."""
        choice, cut = await chosen(request, client)
        return await choice.run.inspector.word(cut.request, cut.ids, client)

    async def cell(request: CellRequest, client: str) -> bytes:
        """The query, the key, their product, and what the value adds to the row that looks."""
        choice, cut = await chosen(request, client)
        return await choice.run.inspector.cell(cut.request, cut.ids, client)

    async def heads(request: LookRequest, client: str) -> bytes:
        """By how much the probability of the translation falls without each of them."""
        choice, cut = await chosen(request, client)
        return await choice.run.inspector.heads(cut.request, cut.ids, client)

    def serve(
        path: str,
        summary: str,
        asks: type[Asked],
        gives: type[Message],
        look_at: Callable[[Asked, str], Coroutine[Any, Any, bytes]],
    ) -> None:
        """``look_at``: by its name and docstring the documentation knows the endpoint."""

        async def answer(http: Request) -> Response:
            async with service.receive(http, asks) as (request, client):
                return json_response(await service.finish(http, look_at(request, client)))

        routes.add_api_route(
            path,
            answer,
            methods=["POST"],
            name=look_at.__name__,
            summary=summary,
            description=cleandoc(look_at.__doc__ or ""),
            responses={200: {"model": gives}, **REFUSALS},
            openapi_extra=body_of(asks),
        )

    serve("/look", "Look inside one translation", LookRequest, LookAnswer, look)
    serve(
        "/look/attention", "Attention of one head, or of all heads of a layer",
        AttentionRequest, Weights, attention,
    )  # fmt: skip
    serve("/look/word", "What became of one word", WordRequest, WordAnswer, word)
    serve("/look/cell", "One weight of one head, opened", CellRequest, CellAnswer, cell)
    serve(
        "/look/heads", "What each head is good for in a translation",
        LookRequest, HeadsAnswer, heads,
    )  # fmt: skip
    return routes
