"""A translator that is served: how a request wants its texts translated, and what that takes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import ValidationError

from dragoman.engine.engine import Engine
from dragoman.errors import RunError
from dragoman.forms.passage import Passage
from dragoman.plural import plural
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.outputs.schema import DetectedLanguage
from dragoman.serving.queue.cost import READING
from dragoman.serving.service.catalogue import ChosenRun
from dragoman.serving.service.knowledge import sentences_of
from dragoman.serving.service.served_run import ServedRun, bad_field
from dragoman.serving.service.service import Service
from dragoman.serving.translate import schema
from dragoman.serving.translate.proofs import Proofs
from dragoman.tasks.translation.lines import requests_of
from dragoman.tasks.translation.proofreading.plain import PlainCheck
from dragoman.tasks.translation.proofreading.proofreader import Proofreader

logger = logging.getLogger("dragoman")


@dataclass(frozen=True)
class TranslationOptions:
    """How one request wants its texts translated."""

    settings: SearchSettings
    whole: bool = False
    prefix: tuple[int, ...] = ()
    """For the first sentence of each text."""
    warnings: bool = False
    """Whether it will be asked what is doubtful."""


@dataclass(frozen=True)
class TranslationPlan:
    """Texts as they will be translated."""

    passages: list[Passage]
    requests: list[Request]
    """One for each piece of each passage."""


class ServedTranslator(ServedRun):
    """A run that translates and is served."""

    task, does, path = "translation", "translates", "/v1/translate"
    trained = "dragoman train my.en my.de"
    translates = True

    def __init__(
        self,
        name: str,
        engine: Engine,
        settings: ServeSettings,
        run: Run | None = None,
        proofreader: Proofreader | None = None,
    ) -> None:
        """``proofreader``: who knows what it has learned from."""
        super().__init__(name, engine, settings, run)
        self.proofs = Proofs(engine, proofreader or Proofreader(engine), self.aligning)

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedTranslator:
        engine, proofreader = Engine.open(run, settings), None
        try:
            proofreader = Proofreader.of(run, engine)
        except RunError as error:  # what a run knows must not keep it from translating
            logger.warning("%s", error)
        return cls(name, engine, settings, run, proofreader)

    examples = staticmethod(sentences_of)

    def plain_check(self) -> PlainCheck:
        """Looks at the translations of a document for what is seen without the model."""
        return PlainCheck(self.source, self.proofs.lexicon)

    # ---- all of these are for a thread beside the event loop; each raises Refusal 400

    def options(self, request: schema.TranslateRequest) -> TranslationOptions:
        """What a request of our own interface asks for."""
        asked = request.model_dump(
            include={"beam", "length_penalty", "min_length", "max_length", "no_repeat_ngram"},
            exclude_none=True,
        )
        values = {**self.engine.search_settings.model_dump(), "n_best": request.n_best, **asked}
        values |= {"alternatives": request.alternatives, "sampling": None}
        if request.sampling is not None:
            values["sampling"] = request.sampling.model_dump()
        elif not request.alternatives and request.beam is None:
            values["beam"] = max(values["beam"], request.n_best)
        try:
            settings = SearchSettings.model_validate(values)
        except ValidationError as error:
            raise bad_field(error) from None
        self.check_search(settings)
        if request.prefix and request.prefix_tokens:
            raise Refusal("two_prefixes", "Give either prefix or prefix_tokens, not both.")
        tokens = tuple(request.prefix_tokens or ())
        size = self.engine.target.size
        if any(token >= size for token in tokens):
            raise Refusal(
                "no_such_token",
                f"prefix_tokens must be below {size}, the size of the vocabulary.",
                field="prefix_tokens",
                vocabulary=size,
            )
        if request.prefix:
            tokens = tuple(self.engine.target.tokens([request.prefix])[0])
        return TranslationOptions(settings, request.whole, tokens, request.warnings)

    def alternatives(self, count: int) -> TranslationOptions:
        """What a request of LibreTranslate's asks for: so many translations beside the best."""
        self.check_width(1 + count)
        search = self.engine.search_settings
        changed = {"n_best": count + 1, "sampling": None, "alternatives": False}
        changed["beam"] = max(search.beam, count + 1)
        settings = SearchSettings.model_validate(search.model_dump() | changed)
        self.check_search(settings)
        return TranslationOptions(settings)

    def plan(self, texts: Sequence[str], options: TranslationOptions) -> TranslationPlan:
        """The texts cut, and what is searched for: no more than one answer may hold and one request
        may cost."""
        passages = self.engine.cut(texts, whole=options.whole)
        sentences = sum(len(passage.pieces) for passage in passages)
        most, each = self.settings.limits.translations, options.settings.n_best
        if sentences * each > most:
            raise Refusal(
                "too_many_translations",
                f"{each} translations of each of {sentences:,} sentences are {sentences * each:,}; "
                f"this server gives {most:,} at once. Ask for fewer, or send the text in parts.",
                each=each,
                sentences=sentences,
                total=sentences * each,
                most=most,
            )
        if options.warnings:
            self._check_warnings(passages)
        begun = [options.prefix] * len(passages)
        requests = requests_of(self.engine, passages, options.settings, begun)
        self.check_searches(requests)
        return TranslationPlan(passages, requests)

    def _check_warnings(self, passages: Sequence[Passage]) -> None:
        """A sentence is read once more without each of its words."""
        lengths = [len(piece.values) for passage in passages for piece in passage.pieces]
        tokens = sum((length + 2) * 2 * length for length in lengths)
        self.check_cost(
            tokens * READING,
            "warnings",
            f"warnings of {plural(len(lengths), 'sentence')} of up to "
            f"{plural(max(lengths, default=0), 'token')}",
            "Send fewer or shorter sentences at once, or leave warnings out.",
        )

    def head(self, passage: Passage, detected: DetectedLanguage | None) -> schema.Translation:
        """A translation as the API tells it, without its text and sentences."""
        return schema.Translation(
            text="",
            source=self.source,
            target=self.target,
            run=self.name,
            detected=detected,
            before=passage.before,
            sentences=[],
        )


Choice: TypeAlias = ChosenRun[ServedTranslator]


@dataclass(frozen=True)
class SearchedText:
    """A text and what was found for it."""

    choice: Choice
    passage: Passage
    found: list[list[Hypothesis]]
    """The n best of each piece."""


async def search_texts(
    service: Service,
    choices: Sequence[Choice],
    texts: Sequence[str],
    options_of: Callable[[ServedTranslator], TranslationOptions],
    client: str,
) -> list[SearchedText]:
    """Each text by its chosen run. Raises what ``options_of`` and ``ServedTranslator.plan`` do."""
    results: dict[int, SearchedText] = {}

    async def by(run: ServedTranslator) -> None:
        numbers = [number for number, choice in enumerate(choices) if choice.run is run]
        own = [texts[number] for number in numbers]
        plan = await service.texts.do(client, lambda: run.plan(own, options_of(run)))
        found = iter(await run.queue.search(plan.requests, client))
        service.meters.count_characters(run.name, client, sum(map(len, own)))
        for number, passage in zip(numbers, plan.passages, strict=True):
            pieces = [next(found) for _ in passage.pieces]
            results[number] = SearchedText(choices[number], passage, pieces)

    runs = dict.fromkeys(choice.run for choice in choices)
    tasks = [asyncio.ensure_future(by(run)) for run in runs]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return [results[number] for number in range(len(texts))]
