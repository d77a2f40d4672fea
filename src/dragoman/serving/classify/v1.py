"""The endpoint of a run that labels texts."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.plural import plural
from dragoman.serving.classify.labelling import Labelling
from dragoman.serving.classify.schema import ClassifyAnswer, ClassifyRequest, LabelledText
from dragoman.serving.cost import EXPLAINING
from dragoman.serving.http.openapi import REFUSALS, body_of, json_response, written
from dragoman.serving.served import ServedRun
from dragoman.serving.service import Service


def router(service: Service) -> APIRouter:
    """The endpoint over one server."""
    routes = APIRouter(prefix="/v1", tags=["dragoman"])

    @routes.post(
        "/classify",
        summary="Give a text its label",
        responses={200: {"model": ClassifyAnswer}, **REFUSALS},
        openapi_extra=body_of(ClassifyRequest),
    )
    async def classify(http: Request) -> Response:
        """With the probability of each label; with `why` also what each word has to do with the
        most probable one, by a gradient and by attention. The two often disagree, and neither is a
        reason."""
        async with service.receive(http, ClassifyRequest) as (request, client):
            texts = [request.text] if isinstance(request.text, str) else request.text
            service.check_texts(texts, client)
            run, labelling = service.catalogue.labelling(request.run)
            labelling.check(len(texts), request.top)
            if request.why:
                tokens = sum(min(len(text), labelling.labeller.longest) for text in texts)
                run.check_tokens(
                    tokens, EXPLAINING, "reasons",
                    f"the words of {plural(len(texts), 'text')}, {tokens:,} tokens at most",
                    "Send fewer or shorter texts at once, or leave why out.",
                )  # fmt: skip
            work = _labels(service, run, labelling, texts, request, client)
            return json_response(await service.finish(http, work))

    return routes


async def _labels(
    service: Service,
    run: ServedRun,
    labelling: Labelling,
    texts: list[str],
    request: ClassifyRequest,
    client: str,
) -> bytes:
    found: dict[int, LabelledText] = dict(
        await labelling.turns.all(client, labelling.texts(texts, request))
    )
    service.meters.count_characters(run.name, client, sum(map(len, texts)))
    answer = ClassifyAnswer(
        run=run.name,
        longest=labelling.labeller.longest,
        texts=[found[number] for number in range(len(texts))],
    )
    return await service.texts.do(client, partial(written, answer))
