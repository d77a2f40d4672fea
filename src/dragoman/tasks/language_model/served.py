"""A served language model: its work on a text, for threads outside the event loop, and the messages
of ``/v1/write``, ``/v1/surprisal`` and ``/v1/continuations``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.wording import plural
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings
from dragoman.serving.http.limits import ON_TORCH
from dragoman.serving.http.messages import KeyedMessage, Message, Texts
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.served_run import AskedRun, short
from dragoman.tasks.language_model.writer import Growth, Writer, text_of
from dragoman.tasks.shared.surprisal import Length, SurprisalWord, begin_of, windows_in, words_of


class WriteRequest(KeyedMessage):
    """A request to continue a text: `POST /v1/write`."""

    text: str = ""
    """The beginning of the text. It may be empty."""
    run: str | None = None
    """The name of the run. Default: the first run that writes."""
    longest: int = Field(default=256, ge=1)
    """The maximum number of tokens to add."""
    sampling: SamplingSettings = SamplingSettings()
    """The settings for sampling the tokens."""
    likeliest: bool = False
    """Search for the most probable text with the run's beam, instead of sampling."""
    stop: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(), max_length=16, fail_fast=True
    )
    """The strings before which the text ends, whichever comes first."""
    stream: bool = False
    """Answer with server-sent events, which show the text as it is written."""


class TextWord(Message):
    """A word of a text and its surprisal."""

    before: str
    """The white space before the word. All `before` and `text`, joined, are the text."""
    text: str
    """The word without the white space around it."""
    bits: float | None = None
    """The surprisal in bits: -log2 P, given the text before the word that the model reads. Absent
    for words before the part that the model reads."""


class WriteAnswer(Message):
    """A text that the model continued."""

    run: str
    """The name of the run that answered."""
    begin: str
    """The beginning of the text as the vocabulary of the run represents it."""
    text: str
    """The text that the model added."""
    ending: Literal["end", "stop", "longest"]
    """The reason why the text ends. `end`: the model ended it. `stop`: a string of `stop` followed.
    `longest`: it has the maximum length."""
    given: int
    """The number of tokens of the beginning."""
    written: int
    """The number of tokens that were added, including those of a stop string."""
    context: int
    """The maximum number of tokens that the model reads at once. When the text becomes longer, the
    model reads on from its last half."""
    words: list[TextWord]
    """The words of the whole text, including the beginning."""


class SurpriseRequest(KeyedMessage):
    """A request for the surprisal of texts: `POST /v1/surprisal`."""

    text: Texts
    """The text to read, or a list of texts."""
    run: str | None = None
    """The name of the run. Default: the first run that writes."""


class Surprise(Message):
    """The surprisal of one text and its words."""

    words: list[TextWord]
    """The words of the text, in order."""
    bits: float
    """The surprisal of all words together, in bits: -log2 P."""
    end: float
    """The surprisal of the end of the text, in bits. It is low if the model expects the text to end
    here."""
    perplexity: float
    """The perplexity per token, including the end symbol."""
    bits_per_byte: float
    """The surprisal in bits per byte of the text, which does not depend on the vocabulary."""


class SurpriseAnswer(Message):
    """The surprisal of the requested texts."""

    run: str
    """The name of the run that answered."""
    texts: list[Surprise]
    """The surprisal of each text, in the order of the request."""


class ContinuationsRequest(KeyedMessage):
    """A request for the most probable next words: `POST /v1/continuations`."""

    text: str = ""
    """The text, or its beginning. It may be empty."""
    word: int | None = Field(default=None, ge=0)
    """The number of the word to replace, from 0, as `/v1/surprisal` counts words. Default: the
    words after the text."""
    count: int = Field(default=6, ge=1)
    """The number of continuations to compute, each with another first token. Equal words are
    returned once."""
    run: str | None = None
    """The name of the run. Default: the first run that writes."""


class Continuation(Message):
    """A possible next word, and the text that would follow it."""

    before: str
    """The white space before the word."""
    text: str
    """The word. Empty if the text would end here."""
    probability: float
    """The probability of the word and the white space before it, given the text before them. From 0
    to 1."""
    rest: str
    """The text that would follow the word, by greedy search."""


class ContinuationsAnswer(Message):
    """The most probable next words of the text."""

    run: str
    """The name of the run that answered."""
    begin: str
    """The text before the words. `begin`, `before` and `text` of a continuation, joined, are the
    new text."""
    continuations: list[Continuation]
    """The continuations, the most probable first."""


TOKENS_AT_ONCE = 1024
"""The most tokens of a turn, or one window: no other client waits longer than this takes."""
AHEAD = 16
"""The number of tokens by which a continuation is extended."""
_FIRST_WORDS = 3
"""The number of words of an example that the model continues."""


@dataclass(frozen=True)
class TextPlace:
    """A place in a text at which the model is asked for alternatives."""

    begin: str
    """The text that precedes the place."""
    kept: tuple[int, ...]
    """The tokens of that text that the model reads."""
    spaces: int
    """The number of last tokens among these that only write the space before the alternatives."""
    request: Request


class ServedLanguageModel(AskedRun[Writer]):
    """A language model that the server has loaded."""

    task, does, path = "language-model", "goes on with a text", "/v1/write"
    trained = "dragoman train my.txt --task language-model"
    sent, gives = WriteRequest, WriteAnswer
    opens, work = Writer, "surprise"

    def __init__(self, name: str, writer: Writer, settings: ServeSettings) -> None:
        super().__init__(name, writer, settings)
        recipe = self.run.recipe
        self.context, self._stride = windows_in(recipe.evaluation, recipe.plan.context)
        """The tokens that the model reads at once, and the stride of the windows in which a text is
        read (``search/forced_decoding.py``)."""

    @staticmethod
    def examples(run: Run) -> list[str]:
        return short(" ".join(text.split()[:_FIRST_WORDS]) for text in run.sources_while_learning())

    # ---- writing

    def growth(self, request: WriteRequest) -> Growth:
        """Begin a text. Raises Refusal 400 for more than this server writes."""
        most, search = self.settings.limits.written, self.engine.search_settings
        if request.longest > most:
            raise Refusal(
                "too_much_to_write",
                f"longest: {request.longest:,} tokens were requested; this server writes at most "
                f"{most:,} at once. Request fewer, and continue from the result.",
                asked=request.longest,
                most=most,
            )
        rows = search.beam if request.likeliest else 1
        wide = plural(rows, "hypothesis", "hypotheses")
        self.check_cost(
            rows * request.longest * ON_TORCH,
            "writing",
            f"{plural(request.longest, 'token')} with {wide}",
            "Request fewer tokens (longest), and continue from the result.",
        )
        settings = search.model_copy(
            update={
                "sampling": None if request.likeliest else request.sampling,
                "alternatives": False,
                "n_best": 1,
                "min_length": 0,
            }
        )
        return Growth(
            self.engine,
            self.context,
            request.text,
            settings,
            stop=request.stop,
            longest=request.longest,
        )

    def describe(self, growth: Growth) -> WriteAnswer:
        """Describe a text as far as it is written."""
        _, words = growth.words() if growth.ending else (0, [])
        return WriteAnswer(
            run=self.name,
            begin=growth.begin,
            text=growth.text[len(growth.begin) :],
            ending=growth.ending or "longest",
            given=growth.given,
            written=len(growth.tokens) - growth.given,
            context=self.context,
            words=[word_message(word) for word in words],
        )

    # ---- reading

    def tokens(self, text: str) -> list[int]:
        return self.engine.target.tokens([text])[0]

    def parts(self, tokens: Sequence[int]) -> Iterator[list[float]]:
        """Yield log P of each token and of the end symbol, some tokens at a time."""
        return self.engine.score_parts(tokens, self.context, self._stride, TOKENS_AT_ONCE)

    def surprise(
        self, text: str, tokens: Sequence[int], log_probabilities: Sequence[float]
    ) -> Surprise:
        """Describe the surprisal of a text; ``log_probabilities`` come from ``parts``."""
        form = self.engine.written
        words = words_of(form, tokens, log_probabilities[:-1])
        length = Length.of(form.vocabulary, form.prepare(text), tokens)
        scores = length.scores(-math.fsum(log_probabilities))
        return Surprise(
            words=[word_message(word) for word in words],
            bits=_bits(log_probabilities[:-1]),
            end=_bits(log_probabilities[-1:]),
            perplexity=scores["perplexity"],
            bits_per_byte=scores["bits_per_byte"],
        )

    # ---- what else could come

    def place(self, request: ContinuationsRequest) -> TextPlace:
        """Find the place of a request, and make its search request. Raises Refusal 400."""
        form, settings = self.engine.written, self.engine.search_settings
        tokens, spaces = self.tokens(request.text), 0
        if request.word is not None:
            try:
                first, place = begin_of(form, tokens, request.word)
                tokens, spaces = tokens[:place], place - first
            except IndexError:
                count = len(words_of(form, tokens, [0.0] * len(tokens)))
                raise Refusal(
                    "no_such_word",
                    f"word: the text has {count}, counted from 0; {request.word} was requested.",
                    word=request.word,
                    words=count,
                ) from None
        kept = tokens if len(tokens) < self.context else tokens[-max(1, self.context // 2) :]
        chosen = settings.model_copy(
            update={
                "sampling": None,
                "alternatives": True,
                "beam": 1,
                "n_best": request.count,
                "length_penalty": 0.0,
                "min_length": 0,
                "max_length": len(kept) + AHEAD,
            }
        )
        (nothing,) = self.engine.source.values([""])
        search = self.engine.request(nothing, chosen, kept)
        return TextPlace(text_of(self.engine, tokens), tuple(kept), spaces, search)

    def continuations(self, place: TextPlace, n_best: Sequence[Hypothesis]) -> ContinuationsAnswer:
        """List the words with which the hypotheses continue, each once, the most probable first."""
        known: dict[str, Continuation] = {}
        every = [self._continuation(place, hypothesis) for hypothesis in n_best]
        for continuation in sorted(every, key=lambda continuation: -continuation.probability):
            known.setdefault(continuation.before + continuation.text, continuation)
        some = list(known.values())
        return ContinuationsAnswer(run=self.name, begin=place.begin, continuations=some)

    def _continuation(self, place: TextPlace, hypothesis: Hypothesis) -> Continuation:
        first = len(place.kept)
        tokens, costs = hypothesis.tokens[first:], hypothesis.token_log_probabilities[first:]
        # The space is included, as in the bits of a word.
        of_space = math.exp(sum(hypothesis.token_log_probabilities[first - place.spaces : first]))
        begins = not place.begin
        words = words_of(self.engine.written, tokens, costs[: len(tokens)], begins=begins)
        if not words or not words[0].text:  # nothing but space, or not even that: here it ends
            return Continuation(
                before="", text="", probability=min(1.0, math.exp(sum(costs)) * of_space), rest=""
            )
        word = words[0]
        return Continuation(
            before=word.before,
            text=word.text,
            probability=min(1.0, 2.0**-word.bits * of_space),
            rest="".join(later.before + later.text for later in words[1:]),
        )


def word_message(word: SurprisalWord) -> TextWord:
    """Describe a word and its bits."""
    bits = None if math.isnan(word.bits) else round(max(0.0, word.bits), 4)
    return TextWord(before=word.before, text=word.text, bits=bits)


def _bits(log_probabilities: Sequence[float]) -> float:
    return round(max(0.0, -math.fsum(log_probabilities) / math.log(2)), 4)
