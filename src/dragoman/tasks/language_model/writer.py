"""The predictor of a language model, which continues a text.

The caller that drives a search, ``Writer`` or the server, asks a ``Growth`` for the ``next``
request and gives it the hypotheses as they grow. A text may become longer than the model's context;
the model then reads only the last half of a context and continues from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from dragoman.base.errors import DragomanError
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import WritingPredictor
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.tasks.shared.surprisal import SurprisalWord, words_of

MAX_NEW_TOKENS = 256
"""The default number of tokens that are added to a text."""


@dataclass(frozen=True)
class Written:
    """A text that was written. ``str(written)`` is the text."""

    text: str
    """The whole text, including the given beginning."""
    score: float
    """Log-probability over length penalty (see ``search.hypothesis``), higher is better."""
    token_log_probabilities: tuple[float, ...]
    """log P of each token, in nats, those that were given included, and of the end symbol if the
    model ended the text."""
    ids: tuple[int, ...] = ()
    """The numbers of the tokens in the vocabulary."""

    @classmethod
    def of(cls, text: str, hypothesis: Hypothesis) -> Written:
        """Make a ``Written`` of a text and the hypothesis that has its tokens."""
        return cls(text, hypothesis.score, hypothesis.token_log_probabilities, hypothesis.tokens)

    def __str__(self) -> str:
        return self.text


class Writer(WritingPredictor[list[Written]]):
    """A trained language model, opened to write. It must not be used by several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("language-model", "not a language model")

    @cached_property
    def context(self) -> int:
        """The number of tokens that the model reads at once."""
        return self.run.recipe.evaluation.window or self.run.recipe.plan.context

    def tokens(self, begin: str) -> int:
        """Count the tokens of a beginning."""
        return len(self.engine.target.tokens([begin])[0])

    def stream(
        self,
        begin: str = "",
        settings: SearchSettings | None = None,
        *,
        stop: Sequence[str] = (),
        longest: int = MAX_NEW_TOKENS,
    ) -> Iterator[str]:
        """Continue a text -> its pieces as they are written, without the beginning.

        ``settings``: the best hypothesis, or the first sample, is followed. A beam yields a window
        at a time, because its best hypothesis may change until then. ``stop``: the text ends before
        any of these strings. ``longest``: the most tokens that are added.
        """
        chosen = settings or self.engine.search_settings
        growth = Growth(self.engine, self.context, begin, chosen, stop=stop, longest=longest)
        while (request := growth.next()) is not None:
            for best, is_last in self._grow(request, growth.grows):
                if text := growth.take(best, is_last):
                    yield text
                if growth.ending is not None:
                    break
        if text := growth.rest():
            yield text

    def _grow(self, request: Request, grows: bool) -> Iterator[tuple[Hypothesis, bool]]:
        """Yield the present hypothesis repeatedly, with True when the search has ended."""
        scheduler = self.engine.scheduler()
        ticket = scheduler.submit(request)
        while not scheduler.idle:
            for _, (best, *_) in scheduler.advance():
                yield best, True
                return
            if grows and (so_far := scheduler.so_far(ticket)) is not None:
                yield so_far, False

    def each(
        self, given: Iterable[str], settings: SearchSettings | None = None
    ) -> Iterator[list[Written]]:
        """Continue each beginning -> its n best texts, or n samples. ``settings`` replace the run's
        own. All searches end before the first result."""
        engine, begins = self.engine, list(given)
        nothing = engine.source.values(begins)
        begun = engine.target.tokens(begins)
        requests = [
            engine.request(source, settings, tokens)
            for source, tokens in zip(nothing, begun, strict=True)
        ]
        for n_best in engine.search(requests):
            yield [Written.of(text_of(engine, best.tokens), best) for best in n_best]

    def own_output(self, text: str, prefix: str = "") -> Written:
        """Return the text itself, with the end symbol. Errors: ``DragomanError`` for a prefix."""
        if prefix:
            raise DragomanError("language models have no prefix. Put the beginning into the text")
        tokens = self.engine.target.tokens([text])
        (hypothesis,) = self.score_ids([""], tokens)
        return Written.of(text, hypothesis)


Ending = Literal["end", "stop", "longest"]
"""The reason why a text ended: the model ended it, a stop string occurred, or the greatest length
was reached."""

_NEXT_TURN = 0x9E3779B97F4A7C15
"""An increment between the seeds of turns, unlike any seed that people choose."""


class Growth:
    """A text that is being written. It must not be used by several threads at once."""

    def __init__(
        self,
        engine: Engine,
        context: int,
        begin: str,
        settings: SearchSettings,
        *,
        stop: Sequence[str] = (),
        longest: int = MAX_NEW_TOKENS,
    ) -> None:
        """``context``: the tokens that the model reads at once. ``settings``: the best hypothesis,
        or the first sample, is followed. ``stop``: the text ends before any of these strings.
        ``longest``: the most tokens that are added."""
        self._engine, self._context, self._settings = engine, context, settings
        self.tokens = engine.target.tokens([begin])[0]
        self.given = len(self.tokens)
        """The number of tokens of the beginning."""
        self.begin = self._text()
        """The beginning as the vocabulary restores it."""
        self.text = self.begin
        """The text that may be shown."""
        self.grows = settings.sampling is not None or settings.beam == 1
        """True if hypotheses only grow; a beam may change its best one until a window is full."""
        self.ending: Ending | None = None
        self._most = self.given + longest
        self._costs = [math.nan] * self.given
        """Log P of each token, in nats; NaN for tokens of the beginning that were never read."""
        self._kept = 0
        """The first token of the window."""
        self._new = 0
        """The first token that was not known from the previous window."""
        self._turn = 0
        self._shown = self.begin
        self._held = _Held(stop)
        self._final_words = self._final_tokens = 0
        """The numbers of words that can no longer change, and of their tokens."""

    def next(self) -> Request | None:
        """Make the next search request; None once the text has ended."""
        if self.ending is None and (
            len(self.tokens) >= self._most
            or (self._turn and len(self.tokens) == self._new)  # the last window added nothing
        ):
            self.ending = "longest"
        if self.ending is not None:
            return None
        length = len(self.tokens)
        self._kept = 0 if length < self._context else length - max(1, self._context // 2)
        self._new = length
        limit = min(self._context, self._most - self._kept)
        settings = _of_turn(self._settings, self._turn, limit)
        self._turn += 1
        (nothing,) = self._engine.source.values([""])
        return self._engine.request(nothing, settings, self.tokens[self._kept :])

    def take(self, hypothesis: Hypothesis, is_last: bool) -> str:
        """Take in the tokens of the window -> the additional text that may be shown. With
        ``is_last``, the search of this window has ended."""
        if not is_last and len(hypothesis.tokens) <= self._new - self._kept:
            return ""  # the beginning is still being read
        known = self._new if self._kept else 0
        self.tokens[self._kept :] = hypothesis.tokens
        costs = hypothesis.token_log_probabilities[: len(hypothesis.tokens)]
        self._costs[known:] = costs[known - self._kept :]
        ends = is_last and hypothesis.finished
        text = self._text()
        more = self._held.take(text[len(self._shown) :])
        self._shown = text
        if self._held.stopped:
            self.ending = "stop"
        elif ends:
            self.ending = "end"
        self.text += more
        return more

    def rest(self) -> str:
        """Return the text that was held back, after the text has ended."""
        more = self._held.rest()
        self.text += more
        return more

    def words(self) -> tuple[int, list[SurprisalWord]]:
        """Return the words that are new or longer since the last call, and the number of the first.
        All words joined are ``text``; unknown bits are NaN."""
        first, final = self._final_words, self._final_tokens
        tail = words_of(
            self._engine.written, self.tokens[final:], self._costs[final:], begins=final == 0
        )
        words = _without_end(tail, len(self._text()) - len(self.text))
        for word in words[:-1]:  # the last word may continue
            self._final_words += 1
            self._final_tokens += word.tokens
        return first, words

    def _text(self) -> str:
        return text_of(self._engine, self.tokens)


def text_of(engine: Engine, tokens: Sequence[int]) -> str:
    """Return exactly the text of the tokens, line ends included."""
    form = engine.written
    return form.restore(form.vocabulary.decode_exact(tokens))


class _Held:
    """Holds back text that may be the beginning of a stop string."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = [end for end in stop if end]
        self._held = ""
        self.stopped = False

    def take(self, text: str) -> str:
        """Take in more text -> the text that may be shown."""
        held = self._held + text
        places = [place for end in self._stop if (place := held.find(end)) >= 0]
        if places:
            self.stopped, held = True, held[: min(places)]
        keep = 0
        if not self.stopped:
            keep = max(
                (n for end in self._stop for n in range(1, len(end)) if held.endswith(end[:n])),
                default=0,
            )
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def rest(self) -> str:
        """Return the text that is still held back at the end."""
        held, self._held = self._held, ""
        return held


def _without_end(words: Sequence[SurprisalWord], characters: int) -> list[SurprisalWord]:
    """Remove the last ``characters`` from the words."""
    kept = list(words)
    while kept and characters:
        word = kept.pop()
        length = len(word.before) + len(word.text) - characters
        characters = max(0, -length)
        if length > 0:
            before = word.before[:length]
            kept.append(word._replace(before=before, text=word.text[: length - len(before)]))
    return kept


def _of_turn(settings: SearchSettings, turn: int, limit: int) -> SearchSettings:
    """Return the search settings for the window number ``turn`` of a long text: at most ``limit``
    tokens, and a seed of its own."""
    sampling = settings.sampling
    if sampling is not None:
        seed = (sampling.seed + turn * _NEXT_TURN) % 2**63
        sampling = sampling.model_copy(update={"seed": seed})
    least = min(settings.min_length, limit)
    changes = {"sampling": sampling, "n_best": 1, "max_length": limit, "min_length": least}
    return settings.model_copy(update=changes)
