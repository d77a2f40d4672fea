"""What one run does with a text that stands alone: for threads beside the event loop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.engine.engine import Engine
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.turns import Turns
from dragoman.serving.write.schema import (
    Continuation,
    ContinuationsRequest,
    Surprise,
    TextWord,
    WriteRequest,
)
from dragoman.tasks.language_model.generation import Growth, text_of
from dragoman.tasks.language_model.surprisal import Word, begin_of, words_of
from dragoman.tasks.shared.code_length import Length

TOGETHER = 1024
"""Tokens that are read in one turn, or one window: others wait no longer than that takes."""
AHEAD = 16
"""Tokens by which it is shown how a text would go on."""
OF_CLIENT, OF_ALL = 8, 64
"""Requests that may wait to have their texts read, of one client and of all."""


@dataclass(frozen=True)
class Place:
    """Where something else could come."""

    begin: str
    """What stands before."""
    kept: tuple[int, ...]
    """The tokens of it that are read."""
    spaces: int
    """The last of these that write nothing but the space of what comes."""
    request: Request


class Composer:
    """A language model that is served."""

    def __init__(self, engine: Engine, context: int, stride: int) -> None:
        """``context``: tokens that it reads at once. ``stride``: by how many a window moves on
        while a text is read (``search/windows.py``)."""
        self._engine = engine
        self.context = context
        self._stride = stride
        self.reading = Turns("surprise", of_client=OF_CLIENT, of_all=OF_ALL)
        """Where texts are read."""

    def close(self) -> None:
        self.reading.close()

    # ---- writing

    def growth(self, request: WriteRequest, most: int) -> Growth:
        """A text that is to be gone on with. Raises Refusal 400 for more than ``most`` tokens."""
        if request.longest > most:
            raise Refusal(
                "too_much_to_write",
                f"longest: {request.longest:,} tokens were asked for, and this server writes "
                f"{most:,} at once. Ask for fewer, and go on from what you get.",
                asked=request.longest,
                most=most,
            )
        settings = self._engine.search_settings.model_copy(
            update={
                "sampling": None if request.likeliest else request.sampling,
                "alternatives": False,
                "n_best": 1,
                "min_length": 0,
            }
        )
        return Growth(
            self._engine,
            self.context,
            request.text,
            settings,
            stop=request.stop,
            longest=request.longest,
        )

    # ---- reading

    def tokens(self, text: str) -> list[int]:
        return self._engine.target.tokens([text])[0]

    def parts(self, tokens: Sequence[int]) -> Iterator[list[float]]:
        """log P of each token and of the end symbol, some at a time."""
        return self._engine.score_parts(tokens, self.context, self._stride, TOGETHER)

    def surprise(
        self, text: str, tokens: Sequence[int], log_probabilities: Sequence[float]
    ) -> Surprise:
        """``log_probabilities``: all that ``parts`` gave."""
        form = self._engine.written
        words = words_of(form, tokens, log_probabilities[:-1])
        length = Length.of(form.vocabulary, form.prepare(text), tokens)
        scores = length.scores(-math.fsum(log_probabilities))
        return Surprise(
            words=[told(word) for word in words],
            bits=_bits(log_probabilities[:-1]),
            end=_bits(log_probabilities[-1:]),
            perplexity=scores["perplexity"],
            bits_per_byte=scores["bits_per_byte"],
        )

    # ---- what else could come

    def place(self, request: ContinuationsRequest) -> Place:
        """Where something else could come, and what is to be searched for. Raises Refusal 400."""
        form, settings = self._engine.written, self._engine.search_settings
        tokens, spaces = self.tokens(request.text), 0
        if request.word is not None:
            try:
                first, place = begin_of(form, tokens, request.word)
                tokens, spaces = tokens[:place], place - first
            except IndexError:
                count = len(words_of(form, tokens, [0.0] * len(tokens)))
                raise Refusal(
                    "no_such_word",
                    f"word: the text has {count}, counted from 0; {request.word} was asked for.",
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
        (nothing,) = self._engine.source.values([""])
        asked = self._engine.request(nothing, chosen, kept)
        return Place(text_of(self._engine, tokens), tuple(kept), spaces, asked)

    def continuations(self, place: Place, found: Sequence[Hypothesis]) -> list[Continuation]:
        """The words with which the hypotheses go on, each once, the most probable first."""
        known: dict[str, Continuation] = {}
        for one in sorted((self._continuation(place, one) for one in found), key=_unlikely):
            known.setdefault(one.before + one.text, one)
        return list(known.values())

    def _continuation(self, place: Place, found: Hypothesis) -> Continuation:
        first = len(place.kept)
        tokens, costs = found.tokens[first:], found.token_log_probabilities[first:]
        # With its space, as the bits of a word are.
        of_space = math.exp(sum(found.token_log_probabilities[first - place.spaces : first]))
        begins = not place.begin
        words = words_of(self._engine.written, tokens, costs[: len(tokens)], begins=begins)
        if not words or not words[0].text:  # nothing but space, or not even that: here it ends
            return Continuation(
                before="", text="", probability=min(1.0, math.exp(sum(costs)) * of_space), rest=""
            )
        word = words[0]
        return Continuation(
            before=word.before,
            text=word.text,
            probability=min(1.0, 2.0**-word.bits * of_space),
            rest="".join(one.before + one.text for one in words[1:]),
        )


def told(word: Word) -> TextWord:
    """A word, as the API tells it."""
    bits = None if math.isnan(word.bits) else round(max(0.0, word.bits), 4)
    return TextWord(before=word.before, text=word.text, bits=bits)


def _unlikely(one: Continuation) -> float:
    return -one.probability


def _bits(log_probabilities: Sequence[float]) -> float:
    return round(max(0.0, -math.fsum(log_probabilities) / math.log(2)), 4)
