"""The endpoints that look inside a model: ``/v1/look``, single heads and words of it."""

from __future__ import annotations

from functools import partial

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

    async def look_at(request: LookRequest, client: str) -> bytes:
        choice, cut = await chosen(request, client)
        run, detected = choice.run, choice.detected
        seen = await run.inspector.look(cut.request, cut.ids, client)
        work = partial(run.look_answer, cut, seen, detected)
        return await service.texts.do(client, lambda: written(work()))

    async def look_at_attention(request: AttentionRequest, client: str) -> bytes:
        choice, cut = await chosen(request, client)
        return await choice.run.inspector.attention(cut.request, cut.ids, client)

    async def look_at_word(request: WordRequest, client: str) -> bytes:
        choice, cut = await chosen(request, client)
        return await choice.run.inspector.word(cut.request, cut.ids, client)

    async def look_at_cell(request: CellRequest, client: str) -> bytes:
        choice, cut = await chosen(request, client)
        return await choice.run.inspector.cell(cut.request, cut.ids, client)

    async def look_at_heads(request: LookRequest, client: str) -> bytes:
        choice, cut = await chosen(request, client)
        return await choice.run.inspector.heads(cut.request, cut.ids, client)

    @routes.post(
        "/look",
        summary="Look inside one translation",
        responses={200: {"model": LookAnswer}, **REFUSALS},
        openapi_extra=body_of(LookRequest),
    )
    async def look(http: Request) -> Response:
        """Where every layer and head looked, and what every step of the search chose among; with
        heads switched off or source words hidden on request."""
        async with service.receive(http, LookRequest) as (request, client):
            return json_response(await service.finish(http, look_at(request, client)))

    @routes.post(
        "/look/attention",
        summary="Attention of one head, or of all heads of a layer",
        responses={200: {"model": Weights}, **REFUSALS},
        openapi_extra=body_of(AttentionRequest),
    )
    async def attention(http: Request) -> Response:
        """For texts whose attention is too much for one answer. Say what was looked at as in the
        look, and which head."""
        async with service.receive(http, AttentionRequest) as (request, client):
            return json_response(await service.finish(http, look_at_attention(request, client)))

    @routes.post(
        "/look/word",
        summary="What became of one word",
        responses={200: {"model": WordAnswer}, **REFUSALS},
        openapi_extra=body_of(WordRequest),
    )
    async def word(http: Request) -> Response:
        """Where it looked in every layer and head, who looked at it, and its rows of numbers from
        the embedding to the last layer."""
        async with service.receive(http, WordRequest) as (request, client):
            return json_response(await service.finish(http, look_at_word(request, client)))

    @routes.post(
        "/look/cell",
        summary="One weight of one head, opened",
        responses={200: {"model": CellAnswer}, **REFUSALS},
        openapi_extra=body_of(CellRequest),
    )
    async def cell(http: Request) -> Response:
        """The query, the key, their product, and what the value adds to the row that looks."""
        async with service.receive(http, CellRequest) as (request, client):
            return json_response(await service.finish(http, look_at_cell(request, client)))

    @routes.post(
        "/look/heads",
        summary="What each head is good for in a translation",
        responses={200: {"model": HeadsAnswer}, **REFUSALS},
        openapi_extra=body_of(LookRequest),
    )
    async def heads(http: Request) -> Response:
        """By how much the probability of the translation falls without each of them."""
        async with service.receive(http, LookRequest) as (request, client):
            return json_response(await service.finish(http, look_at_heads(request, client)))

    return routes
