"""The predictor of a language model: how a text begins in, how it goes on out.

Whoever drives a search, ``Writer`` or the server, asks a ``Growth`` for the ``next`` request and
hands in what is found as it grows. A text may become longer than what the model reads at once; then
it goes on from the last half of that, and what stands before is forgotten.
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
"""Tokens that are added to a text, unless it is said how many."""


@dataclass(frozen=True)
class Written:
    """One text. ``str(written)`` is it."""

    text: str
    """The whole text, with the beginning that was given."""
    score: float
    """Log-probability over length penalty (see ``search.hypothesis``), higher is better."""
    token_log_probabilities: tuple[float, ...]
    """log P of each token, in nats, those that were given included, and of the end symbol if the
    model ended the text."""
    ids: tuple[int, ...] = ()
    """The tokens as ids."""

    def __str__(self) -> str:
        return self.text


class Writer(WritingPredictor[list[Written]]):
    """A trained language model, ready to write. Not for several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("language-model", "not a language model")

    @cached_property
    def context(self) -> int:
        """Tokens that the model reads at once."""
        return self.run.recipe.evaluation.window or self.run.recipe.plan.context

    def tokens(self, begin: str) -> int:
        """How many tokens a beginning has."""
        return len(self.engine.target.tokens([begin])[0])

    def stream(
        self,
        begin: str = "",
        settings: SearchSettings | None = None,
        *,
        stop: Sequence[str] = (),
        longest: int = MAX_NEW_TOKENS,
    ) -> Iterator[str]:
        """How one text goes on, piece by piece as it is written, the beginning not repeated.

        ``settings``: the best hypothesis, or the first sample, is followed; a beam comes a window
        at a time, as it changes its mind until then. ``stop``: the text ends before any of these.
        ``longest``: tokens that are added at most.
        """
        chosen = settings or self.engine.search_settings
        growth = Growth(self.engine, self.context, begin, chosen, stop=stop, longest=longest)
        while (request := growth.next()) is not None:
            for found, is_last in self._grow(request, growth.grows):
                if text := growth.take(found, is_last):
                    yield text
                if growth.ending is not None:
                    break
        if text := growth.rest():
            yield text

    def _grow(self, request: Request, grows: bool) -> Iterator[tuple[Hypothesis, bool]]:
        """What is found so far, again and again, and whether it is the end of the search."""
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
        """The n best (or n samples) of texts that begin so, for each beginning. ``settings``
        replace the run's own. All are searched for before the first is answered."""
        engine, begins = self.engine, list(given)
        nothing = engine.source.values(begins)
        begun = engine.target.tokens(begins)
        requests = [
            engine.request(source, settings, tokens)
            for source, tokens in zip(nothing, begun, strict=True)
        ]
        for found in engine.search(requests):
            yield [
                Written(
                    text_of(engine, one.tokens), one.score, one.token_log_probabilities, one.tokens
                )
                for one in found
            ]

    def shown(self, text: str, prefix: str = "") -> Written:
        """The text itself, with the end symbol behind it. Errors: ``DragomanError`` for a
        prefix."""
        if prefix:
            raise DragomanError("nothing is read, so the text itself says how it begins")
        tokens = self.engine.target.tokens([text])
        (found,) = self.score_ids([""], tokens)
        return Written(text, found.score, found.token_log_probabilities, found.tokens)


Ending = Literal["end", "stop", "longest"]
"""Why a text ends: the model ended it, a stop string came, or it is as long as it may become."""

_NEXT_TURN = 0x9E3779B97F4A7C15
"""Apart from all seeds that people choose."""


class Growth:
    """One text while it is written. Not for several threads at once."""

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
        """``context``: tokens that the model reads at once. ``settings``: the best hypothesis, or
        the first sample, is followed. ``stop``: the text ends before any of these. ``longest``:
        tokens that are added at most."""
        self._engine, self._context, self._settings = engine, context, settings
        self.tokens = engine.target.tokens([begin])[0]
        self.given = len(self.tokens)
        """Tokens that it begins with."""
        self.begin = self._text()
        """How it begins, as the vocabulary knows it."""
        self.text = self.begin
        """All that may be shown of it."""
        self.grows = settings.sampling is not None or settings.beam == 1
        """Whether what is found only ever grows; a beam changes its mind until a window is full."""
        self.ending: Ending | None = None
        self._most = self.given + longest
        self._costs = [math.nan] * self.given
        """log P of each token, in nats; unknown of those that were given and never read at once."""
        self._kept = 0
        """The first token of the window."""
        self._new = 0
        """The first that is not known from the window before."""
        self._turn = 0
        self._shown = self.begin
        self._held = _Held(stop)
        self._told = _Told()

    def next(self) -> Request | None:
        """What to search for now; nothing once the text has ended."""
        if self.ending is None and (
            len(self.tokens) >= self._most
            or (self._turn and len(self.tokens) == self._new)  # nothing may follow
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

    def take(self, found: Hypothesis, is_last: bool) -> str:
        """The text that may now be shown in addition. ``found``: what the window holds so far, or
        with ``is_last`` its end."""
        if not is_last and len(found.tokens) <= self._new - self._kept:
            return ""  # what was given is still read
        known = self._new if self._kept else 0
        self.tokens[self._kept :] = found.tokens
        costs = found.token_log_probabilities[: len(found.tokens)]
        self._costs[known:] = costs[known - self._kept :]
        ends = is_last and found.finished
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
        """The text that was held back, once the whole has ended."""
        more = self._held.rest()
        self.text += more
        return more

    def words(self) -> tuple[int, list[SurprisalWord]]:
        """The words that are new since this was last asked, or have grown, and the number of the
        first of them. Joined, all words are ``text``; bits that are not known are NaN."""
        told = self._told
        tail = words_of(
            self._engine.written,
            self.tokens[told.tokens :],
            self._costs[told.tokens :],
            begins=told.tokens == 0,
        )
        hidden = len(self._text()) - len(self.text)
        words, first = _without_end(tail, hidden), told.words
        for word in words[:-1]:  # the last may go on
            told.words += 1
            told.tokens += word.tokens
        return first, words

    def _text(self) -> str:
        return text_of(self._engine, self.tokens)


def text_of(engine: Engine, tokens: Sequence[int]) -> str:
    """Exactly the text that is written, line ends included."""
    form = engine.written
    return form.restore(form.vocabulary.decode_exact(tokens))


class _Told:
    """The words that stay as they are."""

    words = tokens = 0


class _Held:
    """What is written but may be the beginning of a stop string is held back."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = [one for one in stop if one]
        self._held = ""
        self.stopped = False

    def take(self, text: str) -> str:
        """Take in more text -> the text that may be shown."""
        held = self._held + text
        places = [place for one in self._stop if (place := held.find(one)) >= 0]
        if places:
            self.stopped, held = True, held[: min(places)]
        keep = 0
        if not self.stopped:
            keep = max(
                (n for one in self._stop for n in range(1, len(one)) if held.endswith(one[:n])),
                default=0,
            )
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def rest(self) -> str:
        """The text that is still held back, at the end."""
        held, self._held = self._held, ""
        return held


def _without_end(words: Sequence[SurprisalWord], characters: int) -> list[SurprisalWord]:
    """The words without the last so many characters."""
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
    """Search settings for one text of at most ``limit`` tokens; each turn samples anew."""
    sampling = settings.sampling
    if sampling is not None:
        seed = (sampling.seed + turn * _NEXT_TURN) % 2**63
        sampling = sampling.model_copy(update={"seed": seed})
    least = min(settings.min_length, limit)
    changes = {"sampling": sampling, "n_best": 1, "max_length": limit, "min_length": least}
    return settings.model_copy(update=changes)
