"""The endpoints that look inside a model: ``/v1/look`` and the paths for heads and words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.answer import look_answer
from dragoman.serving.look.inspector import Asked, Cut, Inspector
from dragoman.serving.look.outputs import DetectedLanguage
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
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service


def endpoints(service: Service) -> Endpoints:
    """The endpoints of ``/v1/look`` for one server."""
    routes = Endpoints(service)

    async def chosen(
        request: Asked, client: str
    ) -> tuple[ServedRun, DetectedLanguage | None, Cut[Asked]]:
        """The run, the detected language and the text to look at. All limits are checked before any
        work."""
        service.check_texts(request.text, client)
        if request.beam is not None and request.beam > service.settings.limits.beam:
            raise Refusal(
                "beam_too_wide",
                f"The widest beam here is {service.settings.limits.beam}.",
                asked=request.beam,
                most=service.settings.limits.beam,
            )
        runs, texts = service.catalogue.to_look_into(request.run), [request.text]
        choices = await service.choose(runs, texts, client, request.source, request.target)
        ((run, detected),) = choices
        return run, detected, await service.texts.do(client, partial(run.look_cut, request))

    @routes.answers("/look", LookRequest, LookAnswer, "Look inside one translation")
    async def look(request: LookRequest, client: str) -> bytes:
        """Where every layer and head looked, and what every step of the search chose among; with
        heads switched off or source words hidden on request."""
        run, detected, cut = await chosen(request, client)
        looking, asked = run.inspector, cut.request
        seen = await looking.turns.do(client, partial(looking.look, asked, cut.ids))
        told = (asked, cut.sentences, seen, run.name, run.engine, detected)
        return await service.written(client, partial(look_answer, *told))

    async def answered(
        request: Asked, client: str, work: Callable[[Inspector, Asked, list[int]], bytes]
    ) -> bytes:
        run, _, cut = await chosen(request, client)
        looking = run.inspector
        return await looking.turns.do(client, partial(work, looking, cut.request, cut.ids))

    @routes.answers(
        "/look/attention",
        AttentionRequest,
        Weights,
        "Attention of one head, or of all heads of a layer",
    )
    async def attention(request: AttentionRequest, client: str) -> bytes:
        """For texts whose attention is too much for one answer. Say what was looked at as in the
        look, and which head."""
        return await answered(request, client, Inspector.attention)

    @routes.answers("/look/word", WordRequest, WordAnswer, "Follow one word through the layers")
    async def word(request: WordRequest, client: str) -> bytes:
        """Where it looked in every layer and head, who looked at it, and its rows of numbers from
        the embedding to the last layer."""
        return await answered(request, client, Inspector.word)

    @routes.answers("/look/cell", CellRequest, CellAnswer, "Show how one weight is computed")
    async def cell(request: CellRequest, client: str) -> bytes:
        """The query, the key, their product, and what the value adds to the row that looks."""
        return await answered(request, client, Inspector.cell)

    @routes.answers("/look/heads", LookRequest, HeadsAnswer, "Measure how much each head matters")
    async def heads(request: LookRequest, client: str) -> bytes:
        """By how much the probability of the translation falls without each of them."""
        return await answered(request, client, Inspector.heads)

    return routes
