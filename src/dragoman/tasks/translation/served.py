"""A served translator: the options of a request, and the work that it takes.

Proofs say what is doubtful about a translation and which source words its words come from. The
plain model computes them in a thread of its own, in which clients take turns. A page sends its
whole text again at each pause in typing, so recent proofs are kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, TypeAlias

from pydantic import Field, ValidationError

from dragoman.base.errors import RunError
from dragoman.base.wording import plural
from dragoman.engine.engine import Engine
from dragoman.forms.form import Passage, Piece
from dragoman.forms.languages import shortest_code
from dragoman.forms.lexicon import Lexicon
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.serving.http.limits import READING
from dragoman.serving.http.messages import KeyedMessage, Message, Texts
from dragoman.serving.http.refusals import Refusal, check_total
from dragoman.serving.look import schema
from dragoman.serving.look.schema import DetectedLanguage
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.served_run import ServedRun, bad_field, sentences_of
from dragoman.serving.service.service import Service
from dragoman.tasks.translation.proofreading.proofreader import Proof, Proofreader, ToProofread


class TranslateRequest(KeyedMessage):
    """A request to translate texts: `POST /v1/translate`."""

    text: Texts
    """The text to translate, or a list of texts."""
    source: str = "auto"
    """The source language as a code, or `auto` to detect it."""
    target: str | None = None
    """The target language as a code. Required if there are several."""
    run: str | None = None
    """The name of the run. Default: a run for these languages."""
    whole: bool = False
    """Translate each text as a whole, without splitting it into sentences."""
    beam: int | None = Field(default=None, ge=1)
    """The number of hypotheses kept at each step of the search; 1 is greedy search. Default: the
    run's setting."""
    n_best: int = Field(default=1, ge=1)
    """The number of translations of each sentence to return, best first."""
    alternatives: bool = False
    """Return `n_best` translations that differ in their first token, or in the first token after
    `prefix`. A separate search completes each of them."""
    prefix: str = ""
    """The beginning of the translation of the first sentence."""
    prefix_tokens: (
        Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=1000, fail_fast=True)] | None
    ) = None
    """The beginning in `prefix` as token numbers, such as the `id` of tokens in an earlier answer.
    Cannot be used together with `prefix`."""
    length_penalty: float | None = Field(default=None, ge=0, le=10)
    """The exponent of the length penalty; 0 switches it off. Default: the run's setting."""
    min_length: int | None = Field(default=None, ge=0, le=1000)
    """The minimum number of tokens in the translation of a sentence. Default: the run's setting."""
    max_length: int | None = Field(default=None, ge=1, le=1000)
    """The maximum number of tokens in the translation of a sentence. Default: the run's setting."""
    no_repeat_ngram: int | None = Field(default=None, ge=0, le=100)
    """Never repeat a sequence of this many tokens in a sentence; 0 switches the rule off. Default:
    the run's setting."""
    sampling: SamplingSettings | None = None
    """Sample with these settings instead of searching for the most probable output."""
    stream: bool = False
    """Answer with server-sent events, which show each sentence as it is written. For a single
    text."""
    warnings: bool = False
    """Return the possible problems of the best translation of each sentence, and the source words
    of each of its words. The plain model computes them, which takes several times as long."""


class Sentence(Message):
    """A sentence of a text and its translations. To restore the whole text, start with the text's
    `before`, and append the `source` and `behind` of each sentence in order."""

    source: str
    """The sentence in the source language."""
    behind: str
    """The text between this sentence and the next, which is kept: white space, or the marker of a
    list."""
    hypotheses: list[schema.Hypothesis]
    """The translations of the sentence, best first."""


class Translation(Message):
    """The translation of one text, sentence by sentence."""

    text: str
    """The translation of the whole text."""
    source: str
    """The source language as a code."""
    target: str
    """The target language as a code."""
    run: str
    """The name of the run that translated."""
    detected: DetectedLanguage | None = None
    """The detected source language, if `source` was `auto`. Absent otherwise."""
    before: str = ""
    """The text before the first sentence, which is kept: white space, or the marker of a list."""
    sentences: list[Sentence]
    """The sentences of the text, in order."""


class TranslateAnswer(Message):
    """The translations of the requested texts."""

    translations: list[Translation]
    """The translation of each text, in the order of the request."""


MAX_PROOFS_KEPT = 16_000_000
"""The approximate number of bytes of proofs that are kept."""
SENTENCES_AT_ONCE = 4
"""The most sentences that are proofread in one turn."""
LETTERS = 400
"""The most characters that are proofread in one turn, unless there is only one sentence. A sentence
is read again without each of its words, so the cost grows with the square of its length."""
ProofKey = tuple[str, tuple[int, ...], bool]
"""The source, the tokens of the translation, and whether the translation was finished."""


class Proofs:
    """Proofreads translations of one run, and keeps recent proofs. An object belongs to the event
    loop."""

    def __init__(self, engine: Engine, proofreader: Proofreader, turns: FairExecutor) -> None:
        """Prepare proofreading. ``turns``: the executor that does the work."""
        self._engine = engine
        self._proofreader = proofreader
        self._turns = turns
        self._parts = 1
        self._kept: OrderedDict[ProofKey, Proof] = OrderedDict()
        self._size = 0

    def over(self, engine: Engine, parts: int) -> Proofs:
        """Return the proofs of another engine of the same run. They may keep 1 / ``parts`` of the
        bytes."""
        proofs = Proofs(engine, self._proofreader.over(engine), self._turns)
        proofs._parts = parts
        return proofs

    def lexicon(self) -> Lexicon | None:
        """The lexicon of the run's training text."""
        return self._proofreader.lexicon

    async def __call__(self, pairs: Sequence[tuple[Piece, Hypothesis]], client: str) -> list[Proof]:
        """Proofread each sentence and its translation."""
        keys: list[ProofKey] = [(piece.text, best.tokens, best.finished) for piece, best in pairs]
        known = {key: self._kept[key] for key in keys if key in self._kept}
        new = [key for key in dict.fromkeys(keys) if key not in known]
        read = chain.from_iterable(
            await self._turns.all(client, map(self._proofread, _turns_of(new)))
        )
        known |= zip(new, read, strict=True)
        for key in known:
            self._keep(key, known[key])
        return [known[key] for key in keys]

    def _proofread(self, keys: Sequence[ProofKey]) -> list[Proof]:
        texts = self._engine.target.raw([tokens for _, tokens, _ in keys])
        pairs = [
            ToProofread(source, text, tokens, finished)
            for (source, tokens, finished), text in zip(keys, texts, strict=True)
        ]
        return list(chain.from_iterable(self._proofreader(pairs)))

    def _keep(self, key: ProofKey, proof: Proof) -> None:
        if self._kept.pop(key, None) is not None:
            self._size -= _size_of(key, proof)
        self._kept[key] = proof
        self._size += _size_of(key, proof)
        while self._size > MAX_PROOFS_KEPT // self._parts:
            self._size -= _size_of(*self._kept.popitem(last=False))


def _turns_of(keys: Sequence[ProofKey]) -> list[list[ProofKey]]:
    """Divide the work into turns, each of which is one call of ``_proofread``."""
    turns: list[list[ProofKey]] = []
    letters = 0
    for key in keys:
        letters += len(key[0])
        if not turns or len(turns[-1]) == SENTENCES_AT_ONCE or letters > LETTERS:
            turns.append([])
            letters = len(key[0])
        turns[-1].append(key)
    return turns


def _size_of(key: ProofKey, proof: Proof) -> int:
    return proof.alignment.nbytes + 4 * len(key[0]) + 100 * (len(key[1]) + len(proof.words) + 10)


logger = logging.getLogger("dragoman")


@dataclass(frozen=True)
class TranslationOptions:
    """The options of one request, checked and completed."""

    settings: SearchSettings
    whole: bool = False
    prefix: tuple[int, ...] = ()
    """The tokens with which the translation of the first sentence of each text begins."""
    warnings: bool = False
    """True if the request asks for warnings."""


class ServedTranslator(ServedRun):
    """A run that translates, loaded by the server."""

    task, does, path = "translation", "translates", "/v1/translate"
    trained = "dragoman train my.en my.de"
    sent, gives = TranslateRequest, TranslateAnswer
    translates = True

    def __init__(
        self,
        name: str,
        engine: Engine,
        settings: ServeSettings,
        run: Run,
        proofreader: Proofreader | None = None,
    ) -> None:
        """Prepare the run for serving. ``proofreader`` has the lexicon and the lengths of the run's
        training text."""
        super().__init__(name, engine, settings, run)
        self.proofs = Proofs(engine, proofreader or Proofreader(engine), self.aligning)
        self._by_target: dict[str, ServedTranslator] = {}
        self._tags: dict[str, str] = {}
        """The tag of each of ``targets``, for a model that has several."""

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedTranslator:
        is_open = bool(run.lacks_tag)
        if is_open:
            run = run.with_tag(run.forms.tags[0])
        engine, proofreader = Engine.open(run, settings), None
        try:
            proofreader = Proofreader.of(run, engine)
        except RunError as error:  # damaged notes must not prevent translation
            logger.warning("%s", error)
        served = cls(name, engine, settings, run, proofreader)
        for tag in sorted(run.forms.tags, key=lambda tag: tag != run.recipe.languages.tag):
            code = shortest_code(tag)
            served._tags[tag if code in served._tags else code] = tag
        served.targets = list(served._tags) or served.targets
        served.usual_targets = served.targets if is_open else [served.target]
        return served

    def into(self, target: str) -> ServedTranslator:
        if target != self.target and target not in self._by_target:
            run = copy(self)
            run.target = target
            run.engine = self.engine.between(self.run.forms.with_tag(self._tags[target]))
            run.proofs = self.proofs.over(run.engine, len(self.targets))
            if self._inspector is not None:
                run._inspector = self._inspector.over(run.engine)
            self._by_target[target] = run
        return self._by_target.get(target, self)

    examples = staticmethod(sentences_of)

    # ---- The next methods run in a thread outside the event loop; each raises Refusal 400.

    def options(self, request: TranslateRequest) -> TranslationOptions:
        """Read the options of a ``/v1/translate`` request."""
        changes = request.model_dump(
            include=set(SearchSettings.model_fields) & set(TranslateRequest.model_fields),
            exclude_none=True,
        )
        values = self.engine.search_settings.model_dump() | {"sampling": None} | changes
        if request.sampling is None and not request.alternatives and request.beam is None:
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
        """Make the options of a LibreTranslate request for ``count`` alternatives."""
        self.check_width(1 + count)
        settings = self.beam_search(None, count + 1)
        self.check_search(settings)
        return TranslationOptions(settings)

    def plan(
        self, texts: Sequence[str], options: TranslationOptions
    ) -> tuple[list[Passage], list[Request]]:
        """Split the texts, and make a search request for each piece, within the limits of one
        answer and one request."""
        passages = self.engine.cut(texts, whole=options.whole)
        sentences = sum(len(passage.pieces) for passage in passages)
        check_total(
            "too_many_translations",
            (options.settings.n_best, "translation"),
            (sentences, "sentences"),
            self.settings.limits.translations,
            "Ask for fewer, or send the text in parts.",
        )
        if options.warnings:
            self._check_warnings(passages)
        begun = [options.prefix] * len(passages)
        requests = self.engine.requests(passages, options.settings, begun)
        self.check_searches(requests)
        return passages, requests

    def _check_warnings(self, passages: Sequence[Passage]) -> None:
        """Check the cost of warnings: a sentence is read again without each of its words."""
        lengths = [len(piece.values) for passage in passages for piece in passage.pieces]
        tokens = sum((length + 2) * 2 * length for length in lengths)
        self.check_cost(
            tokens * READING,
            "warnings",
            f"warnings of {plural(len(lengths), 'sentence')} of up to "
            f"{plural(max(lengths, default=0), 'token')}",
            "Send fewer or shorter sentences at once, or leave warnings out.",
        )

    def head(self, passage: Passage, detected: DetectedLanguage | None) -> Translation:
        """Make a translation message without text and sentences."""
        return Translation(
            text="",
            source=self.source,
            target=self.target,
            run=self.name,
            detected=detected,
            before=passage.before,
            sentences=[],
        )


Choice: TypeAlias = tuple[ServedTranslator, DetectedLanguage | None]
"""The run for a text, and the detected language if none was given."""


async def search_texts(
    service: Service,
    choices: Sequence[Choice],
    texts: Sequence[str],
    options_of: Callable[[ServedTranslator], TranslationOptions],
    client: str,
) -> list[tuple[Passage, list[list[Hypothesis]]]]:
    """Split each text, and search for the n best of each piece with the run chosen for the text.
    Return the pieces of each text and their hypotheses. Raises what ``options_of`` and
    ``ServedTranslator.plan`` raise."""
    results: dict[int, tuple[Passage, list[list[Hypothesis]]]] = {}

    async def by(run: ServedTranslator) -> None:
        numbers = [number for number, (own, _) in enumerate(choices) if own is run]
        own_texts = [texts[number] for number in numbers]
        plan = service.texts.do(client, lambda: run.plan(own_texts, options_of(run)))
        passages, requests = await plan
        n_bests = iter(await run.queue.search(requests, client))
        service.meters.count_characters(run.name, client, sum(map(len, own_texts)))
        for number, passage in zip(numbers, passages, strict=True):
            results[number] = passage, [next(n_bests) for _ in passage.pieces]

    tasks = [asyncio.ensure_future(by(run)) for run in dict.fromkeys(run for run, _ in choices)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return [results[number] for number in range(len(texts))]
