"""The endpoint ``/v1/translate``: translations, optionally streamed, with all their details."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import partial

from fastapi import Request
from starlette.responses import Response

from dragoman.forms.form import Form, Passage, Piece
from dragoman.forms.lexicon import Span
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.messages import json_in_parts, json_of
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.http.stream import event, event_of
from dragoman.serving.look import schema
from dragoman.serving.look.schema import (
    DetectedLanguage,
    TranslationWarning,
    Word,
    hypothesis_message,
    texts_of,
)
from dragoman.serving.queue.worker import Answer, Draft
from dragoman.serving.service.endpoints import Endpoints, Whole
from dragoman.serving.service.service import Service
from dragoman.tasks.translation.proofreading.plain import ProofWarning, warnings_of_lost
from dragoman.tasks.translation.proofreading.proofreader import Proof
from dragoman.tasks.translation.served import (
    Choice,
    Sentence,
    ServedTranslator,
    TranslateAnswer,
    TranslateRequest,
    Translation,
    TranslationOptions,
    search_texts,
)


def endpoints(service: Service) -> Endpoints:
    """Make the translation endpoint of one server."""
    routes = Endpoints(service)

    @routes.streams(
        ServedTranslator,
        "Translate with scores and alternatives",
        "The translations; with `stream`, the events start, draft, sentence, warnings, done and "
        "error",
    )
    async def translate(
        request: TranslateRequest, client: str, _: Request
    ) -> Whole | AsyncGenerator[bytes, None]:
        """Returns translations with their scores and the probability of every token and word.
        Optional: n-best lists, alternatives, a given beginning, sampling, and warnings.

        With `stream`, the answer is server-sent events: `start` (the text, split into sentences),
        `draft` (an unfinished translation of a sentence; with a beam, its words may still change),
        `sentence` (a finished sentence), `warnings` (if requested: the warnings about the best
        translation of a sentence, and the source words of its words), and at the end `done` or
        `error`.
        """
        texts = service.check_texts(request.text, client)
        service.check_texts(request.prefix, client)
        runs = service.catalogue.every(ServedTranslator, request.run)
        choices = await service.choose(runs, texts, client, request.source, request.target)
        if not request.stream:
            return _answer(service, choices, texts, request, client)
        if len(texts) != 1:
            raise Refusal(
                "one_text_streamed",
                "A stream translates only one text. Send each text by itself.",
                texts=len(texts),
            )
        ((run, detected),) = choices
        options = await service.texts.do(client, partial(run.options, request))
        return _events(service, run, detected, texts[0], options, client)

    return routes


async def _answer(
    service: Service,
    choices: list[Choice],
    texts: list[str],
    request: TranslateRequest,
    client: str,
) -> bytes | Response:
    """Translate the texts, and answer with JSON."""
    options = partial(ServedTranslator.options, request=request)
    every = await search_texts(service, choices, texts, options, client)
    proofs: list[list[Proof] | None] = [None] * len(texts)
    if request.warnings:
        for number, (passage, lists) in enumerate(every):
            pairs = [(piece, best) for piece, (best, *_) in zip(passage.pieces, lists, strict=True)]
            proofs[number] = await choices[number][0].proofs(pairs, client)

    translations = (
        translation_message(run.head(passage, detected), run.engine.target, passage, n_bests, proof)
        for (run, detected), (passage, n_bests), proof in zip(choices, every, proofs, strict=True)
    )
    answer = TranslateAnswer(translations=[])
    parts = json_in_parts(answer, "translations", translations)
    return b"".join(await service.texts.all(client, parts))


async def _events(
    service: Service,
    run: ServedTranslator,
    detected: DetectedLanguage | None,
    text: str,
    options: TranslationOptions,
    client: str,
) -> AsyncGenerator[bytes, None]:
    """Translate the text, and answer with events."""
    began = time.monotonic()
    reading: list[asyncio.Task[bytes]] = []
    try:
        (passage,), requests = await service.texts.do(client, partial(run.plan, [text], options))
        yield await service.texts.do(client, partial(_start, run, detected, passage))
        async with aclosing(run.queue.watch(requests, client)) as watched:
            async for batch in watched:
                events = (_event(run, passage.pieces[news.number], news) for news in batch)
                yield b"".join(await service.texts.all(client, events))
                if options.warnings:
                    reading += [
                        asyncio.create_task(
                            _proof(service, run, passage.pieces[news.number], news, client)
                        )
                        for news in batch
                        if isinstance(news, Answer)
                    ]
                while reading and reading[0].done():
                    yield await reading.pop(0)
        for proof in await asyncio.gather(*reading):
            yield proof
        service.meters.count_characters(run.name, client, len(text))
        yield event_of("done", {"seconds": round(time.monotonic() - began, 4)})
    finally:
        for task in reading:
            task.cancel()


def _start(run: ServedTranslator, detected: DetectedLanguage | None, passage: Passage) -> bytes:
    """Make the event with the sentences of a text."""
    sentences = [
        Sentence(source=piece.text, behind=piece.behind, hypotheses=[]) for piece in passage.pieces
    ]
    start = run.head(passage, detected).model_copy(update={"sentences": sentences})
    return event("start", start.model_dump_json(exclude_none=True))


def _event(run: ServedTranslator, piece: Piece, news: Draft | Answer) -> bytes:
    """Make the event for a draft of a sentence, or for its translation."""
    target = run.engine.target
    if isinstance(news, Draft):
        (text,) = texts_of(target, [news.hypothesis])
        return event_of("draft", {"sentence": news.number, "text": text})
    n_best = _n_best(target, piece, news.hypotheses, texts_of(target, news.hypotheses))
    dumped = [hypothesis.model_dump(mode="json", exclude_none=True) for hypothesis in n_best]
    return event_of("sentence", {"sentence": news.number, "hypotheses": dumped})


async def _proof(
    service: Service, run: ServedTranslator, piece: Piece, answer: Answer, client: str
) -> bytes:
    """Make the event with the warnings about a translated sentence."""
    best = answer.hypotheses[0]
    (proof,) = await run.proofs([(piece, best)], client)

    def make_event() -> bytes:
        target = run.engine.target
        (text,) = texts_of(target, [best])
        (message,) = _n_best(target, piece, [best], [text], proof)
        shown = message.model_dump(mode="json", include={"warnings", "words"})
        return event_of("warnings", {"sentence": answer.number, **shown})

    return await service.texts.do(client, make_event)


# ---- results of a text, as the API presents them


def _n_best(
    target: Form,
    piece: Piece,
    hypotheses: Sequence[Hypothesis],
    texts: Sequence[str],
    proof: Proof | None = None,
) -> Iterator[schema.Hypothesis]:
    """Describe the hypotheses of a sentence with their ``texts``. ``proof`` adds warnings and word
    sources to the best; without it, the best is checked for lost placeholders and addresses."""
    for rank, (hypothesis, text) in enumerate(zip(hypotheses, texts, strict=True)):
        message = hypothesis_message(target, hypothesis, text)
        if rank == 0 and proof is None:
            message.warnings = list(map(_warning, warnings_of_lost(piece.text, text))) or None
        elif rank == 0 and proof is not None:
            message.warnings = list(map(_warning, proof.warnings))
            for word, places in zip(message.words, sources_of(message.words, proof), strict=True):
                word.source = places
        yield message


def translation_message(
    head: Translation,
    target: Form,
    passage: Passage,
    n_bests: Sequence[Sequence[Hypothesis]],
    proofs: Sequence[Proof] | None = None,
) -> Iterator[bytes]:
    """Yield a text and its translation as JSON, part by part. ``head``: the message without text
    and sentences; ``n_bests``: the hypotheses of each sentence; ``proofs``: those of each
    sentence's best hypothesis."""
    texts = []
    for hypotheses in n_bests:
        texts.append(texts_of(target, hypotheses))
        yield b""
    text = passage.join([best for best, *_ in texts])
    of_best: Sequence[Proof | None] = proofs or [None] * len(n_bests)
    sentences = (
        json_in_parts(
            Sentence(source=own[0].text, behind=own[0].behind, hypotheses=[]),
            "hypotheses",
            ([json_of(hypothesis)] for hypothesis in _n_best(target, *own)),
        )
        for own in zip(passage.pieces, n_bests, texts, of_best, strict=True)
    )
    yield from json_in_parts(head.model_copy(update={"text": text}), "sentences", sentences)


_LOOKED_AT = 0.15
"""A target word comes from a source word only if the source word has at least this share of its
attention. ``_AS_MUCH`` must be reached too."""
_AS_MUCH = 0.5
"""A target word comes from a source word only if the attention to it is at least this share of the
highest attention to any word."""


def sources_of(words: Sequence[Word], proof: Proof) -> list[list[Span]]:
    """Return, for each word of a translation, the source words that it comes from, in source order.
    The list is empty for a word that attends to no word in particular."""
    spans = []
    for word in words:
        looks = proof.alignment[word.first : word.first + word.count].mean(axis=0)  # (W,)
        least = max(_LOOKED_AT, _AS_MUCH * looks.max(initial=0.0))
        spans.append([place for place, got in zip(proof.words, looks, strict=True) if got >= least])
    return spans


def _warning(warning: ProofWarning) -> TranslationWarning:
    fields = {name: getattr(warning, name) for name in vars(warning).keys() - {"sentence"}}
    return TranslationWarning(**fields, message=str(warning))
