"""The endpoint of a masked model."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.plural import plural
from dragoman.serving.cost import READING
from dragoman.serving.fill.filling import Filling, told
from dragoman.serving.fill.schema import FillAnswer, FillRequest
from dragoman.serving.http.openapi import REFUSALS, body_of, json_response, written
from dragoman.serving.served import ServedRun
from dragoman.serving.service import Service


def router(service: Service) -> APIRouter:
    """The endpoint over one server."""
    routes = APIRouter(prefix="/v1", tags=["dragoman"])

    @routes.post(
        "/fill",
        summary="Fill in the blanks of a text",
        responses={200: {"model": FillAnswer}, **REFUSALS},
        openapi_extra=body_of(FillRequest),
    )
    async def fill(http: Request) -> Response:
        """The candidates of each blank with their probabilities while the others are open, and the
        text with all of them filled: the surest first, the others asked again."""
        async with service.receive(http, FillRequest) as (request, client):
            service.check_texts([request.text], client)
            run, filling = service.catalogue.filling(request.run)
            limits = service.settings.limits
            filling.check(request, min(limits.beam, service.settings.rows))
            work = _filled(service, run, filling, request, client)
            return json_response(await service.finish(http, work))

    return routes


async def _filled(
    service: Service, run: ServedRun, filling: Filling, request: FillRequest, client: str
) -> bytes:
    blanks = filling.check_blanks(request.text)

    def check(tokens: int) -> None:
        pieces = plural(request.pieces, "piece")
        run.check_tokens(
            tokens, READING, "blanks",
            f"{plural(blanks, 'blank')} of {pieces} each; {tokens:,} tokens are read",
            "Send fewer blanks at once, or ask for fewer pieces or candidates (top).",
        )  # fmt: skip

    *_, found = await filling.turns.all(client, filling.parts(request, check))
    assert found is not None, "the filled text comes last"
    service.meters.count_characters(run.name, client, len(request.text))
    filled = found
    return await service.texts.do(client, lambda: written(told(run.name, request.text, filled)))
