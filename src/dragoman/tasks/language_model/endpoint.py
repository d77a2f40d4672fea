"""The endpoints of a language model: continuing a text, its surprisal, and alternative words."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from fastapi import Request
from starlette.responses import Response

from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.http.stream import event, event_of, until
from dragoman.serving.queue.worker import Answer
from dragoman.serving.service.endpoints import Endpoints, Whole
from dragoman.serving.service.service import Service
from dragoman.tasks.language_model.served import (
    ContinuationsAnswer,
    ContinuationsRequest,
    ServedLanguageModel,
    SurpriseAnswer,
    SurpriseRequest,
    WriteAnswer,
    WriteRequest,
    word_message,
)
from dragoman.tasks.language_model.writer import Growth


def endpoints(service: Service) -> Endpoints:
    """Make the language model endpoints of one server."""
    routes = Endpoints(service)

    @routes.streams(
        ServedLanguageModel,
        "Continue a text",
        "The text; with `stream`, the events start, text, done and error",
    )
    async def write(
        request: WriteRequest, client: str, _: Request
    ) -> Whole | AsyncGenerator[bytes, None]:
        """Samples with temperature, top-k, top-p and seed, or searches for the most probable text.
        Returns the added text and the surprisal of each word.

        With `stream`, the answer is server-sent events: `start` (the beginning as the vocabulary
        represents it, and its number of tokens), `text` (the added text, and the words that are new
        or have grown, where `first` is the number of the first of them), and at the end `done`
        (with the reason why the text ends) or `error`. To stop, close the connection.
        """
        service.check_texts([request.text, *request.stop], client)
        run = service.catalogue.of(ServedLanguageModel, request.run)
        growth = await service.texts.do(client, partial(run.growth, request))
        writing = _Writing(service, run, growth, client)
        return writing.events() if request.stream else writing.whole()

    @routes.answers("/surprisal", SurpriseRequest, SurpriseAnswer, "Compute the surprisal of texts")
    async def surprisal(request: SurpriseRequest, client: str) -> bytes:
        """Returns the surprisal of each word in bits; a word with one more bit is half as likely. A
        long text is read in overlapping windows."""
        texts = service.check_texts(request.text, client)
        run = service.catalogue.of(ServedLanguageModel, request.run)
        answers = []
        for text in texts:
            ids = await service.texts.do(client, partial(run.tokens, text))
            parts = await run.asking.all(client, run.parts(ids))
            costs = [cost for part in parts for cost in part]
            answers.append(await service.texts.do(client, partial(run.surprise, text, ids, costs)))
        service.meters.count_characters(run.name, client, sum(map(len, texts)))
        return await service.encode(client, lambda: SurpriseAnswer(run=run.name, texts=answers))

    @routes.answers(
        "/continuations", ContinuationsRequest, ContinuationsAnswer, "List probable next words"
    )
    async def continuations(request: ContinuationsRequest, client: str) -> bytes:
        """Returns the most probable words after a text, or instead of one of its words, each with
        the text that would follow."""
        service.check_texts(request.text, client)
        run = service.catalogue.of(ServedLanguageModel, request.run)
        most = min(service.settings.limits.beam, service.settings.rows)
        if request.count > most:
            raise Refusal(
                "too_many_choices",
                f"count: {request.count} were requested; this server returns at most {most}.",
                asked=request.count,
                most=most,
            )
        place = await service.texts.do(client, partial(run.place, request))
        (hypotheses,) = await run.queue.search([place.request], client)
        service.meters.count_characters(run.name, client, len(request.text))
        return await service.encode(client, partial(run.continuations, place, hypotheses))

    return routes


@dataclass(frozen=True)
class _Writing:
    """A text that is being written for a client."""

    service: Service
    run: ServedLanguageModel
    growth: Growth
    client: str

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the events of the text as it grows."""
        growth, do = self.growth, partial(self.service.texts.do, self.client)
        began = time.monotonic()
        yield await do(self._start)
        left = self.service.settings.limits.seconds - (time.monotonic() - began)
        async with aclosing(until(left, self._grow(self._text))) as grown:
            async for some in grown:
                if some:
                    yield some
        if some := await do(self._rest):
            yield some
        self._count()
        done = {"ending": growth.ending, "written": len(growth.tokens) - growth.given}
        yield event_of("done", {**done, "seconds": round(time.monotonic() - began, 4)})

    async def whole(self) -> bytes | Response:
        """Write the whole text, and answer with JSON."""
        async with aclosing(self._grow(lambda _: b"")) as grown:
            async for _ in grown:
                pass
        self._count()

        def answer() -> WriteAnswer:
            self.growth.rest()
            return self.run.describe(self.growth)

        return await self.service.encode(self.client, answer)

    async def _grow(self, tell: Callable[[str], bytes]) -> AsyncGenerator[bytes, None]:
        """Yield an event for each new part of the text until it has ended. Closing the generator
        frees its place in the queue."""
        growth, do = self.growth, partial(self.service.texts.do, self.client)

        def take(best: Hypothesis, is_last: bool) -> bytes:
            text = growth.take(best, is_last)
            return tell(text) if text else b""

        while (request := await do(growth.next)) is not None:
            async with aclosing(self.run.queue.watch([request], self.client)) as watched:
                async for (news,) in watched:
                    is_last = isinstance(news, Answer)
                    if is_last or growth.grows:
                        best = news.hypotheses[0] if isinstance(news, Answer) else news.hypothesis
                        yield await do(partial(take, best, is_last))
                    if growth.ending is not None:
                        break

    def _count(self) -> None:
        length = len(self.growth.text)
        self.service.meters.count_characters(self.run.name, self.client, length)

    def _start(self) -> bytes:
        shown = {"run", "begin", "given", "context"}
        return event("start", self.run.describe(self.growth).model_dump_json(include=shown))

    def _rest(self) -> bytes:
        """Make the event with the text that was held back to the end."""
        text = self.growth.rest()
        return self._text(text) if text else b""

    def _text(self, text: str) -> bytes:
        first, words = self.growth.words()
        shown = [word_message(word).model_dump(exclude_none=True) for word in words]
        return event_of("text", {"text": text, "first": first, "words": shown})
