"""A source as a model reads it, where its words stand, which of them the run has never read, and
whether it is of another language than the run reads."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dragoman.forms.form import Form
from dragoman.forms.identification import identify
from dragoman.forms.languages import NAMES, base
from dragoman.forms.lexicon import Lexicon, Span, words_in
from dragoman.forms.pieces import UNKNOWN, is_byte, pieces_in
from dragoman.tasks.translation.proofreading.plain import ProofWarning


@dataclass(frozen=True)
class ReadSource:
    """A text of S tokens and W words."""

    text: str
    tokens: list[int]
    """Without the end symbol, as the next two."""
    pieces: list[str]
    spans: NDArray[np.float64]
    """(S, 2) where each token begins and ends in the text."""
    words: list[Span]
    """What can be missed: words, or pieces where no spaces stand between words."""

    @classmethod
    def of(cls, form: Form, text: str) -> Self:
        """A text as a form reads it; of a form that reads none, nothing."""
        if not form.reads:
            return cls("", [], [], np.zeros((0, 2)), [])
        (tokens,) = form.tokens([text])
        pieces, spans = pieces_in(form, text)
        words = words_in(text) if form.spaced else touching(spans, apart=True)
        return cls(text, tokens, pieces, spans, words)

    def at(self, place: Span) -> str:
        """The text of a span."""
        return self.text[slice(*place)]

    @cached_property
    def members(self) -> NDArray[np.float64]:
        """(S, W) 1 where a token stands in a word, or in part of it."""
        words = np.array(self.words, dtype=np.float64).reshape(-1, 2)
        begin, end = self.spans[:, :1], self.spans[:, 1:]
        overlap = np.minimum(end, words[:, 1]) - np.maximum(begin, words[:, 0])
        return (overlap > 1e-6).astype(np.float64)

    def without(self, place: Span) -> str:
        """The text without a stretch of it, and without the space that it would leave behind."""
        before, behind = self.text[: place[0]].rstrip(), self.text[place[1] :]
        if not before:
            return behind.lstrip()
        return before + behind if behind[:1].strip() else f"{before} {behind.lstrip()}".rstrip()


def touching(spans: NDArray[np.float64], *, apart: bool = False) -> list[Span]:
    """Places of tokens in whole characters, those that touch as one unless they are kept apart."""
    places: list[Span] = []
    for begin, end in spans:
        first, last = round(begin), round(end)
        if places and not apart and places[-1][1] >= first:
            places[-1] = (places[-1][0], max(last, places[-1][1]))
        elif last > first:
            places.append((first, last))
    return places


_WORD_OF_PARTS = 4.0
"""Letters of a piece, on average, from which on a word that was never read is made of parts that
were: compounds, inflections."""
_STRANGE = 0.6
"""Share of words never read from which on a sentence is of another language."""
_MIN_WORDS = 3
"""The fewest words of a sentence whose language is judged by that share alone."""
_TELLING_WORDS = 5
"""Words from which on small words tell a language, where it is not known what was read."""
_SIGNS = frozenset("'\"‘’‚‛“”„‟«»‹›-‐‑‒–—―…,.;:!?()[]{}¡¿、。· \t\n\r")
"""What may be missing from a translation without harm."""


def unknown_words(source: ReadSource, lexicon: Lexicon | None) -> list[Span]:
    """Words and signs that the run has never read, those that touch as one ("<b>"); without a
    lexicon, those that its vocabulary cannot write."""
    unreadable = np.array([piece == UNKNOWN or is_byte(piece) for piece in source.pieces], bool)
    found = []
    for place, members in zip(source.words, source.members.T > 0, strict=True):
        is_new = lexicon is not None and _is_new(source.at(place), int(members.sum()), lexicon)
        if is_new or (unreadable & members).any():
            found.append(place)
    signs = touching(source.spans[unreadable & ~(source.members > 0).any(axis=1)])
    found += [place for place in signs if set(source.at(place)) - _SIGNS]
    return touching(np.array(sorted(found)).reshape(-1, 2))


def _is_new(word: str, pieces: int, lexicon: Lexicon) -> bool:
    """Whether a word was never read, and is not made of parts that were."""
    if lexicon.has(word):
        return False
    letters = sum(unicodedata.category(c)[0] == "L" for c in unicodedata.normalize("NFD", word))
    return letters < _WORD_OF_PARTS * pieces


def another_language(
    source: ReadSource, unknown: Sequence[Span], lexicon: Lexicon | None, language: str
) -> ProofWarning | None:
    """That a source is of another language than ``language``, which the run reads; ``unknown``: the
    words that it never has read."""
    spoken = [place for place in source.words if not source.at(place)[0].isdigit()]
    if not spoken:
        return None
    never = [
        place
        for place in spoken
        if place in unknown or (lexicon is not None and not lexicon.has(source.at(place)))
    ]
    read_as = identify([source.text])
    if base(language) in read_as:
        return None
    is_strange = len(never) >= _STRANGE * len(spoken)
    if lexicon is not None or is_strange:
        is_strange = is_strange and (bool(read_as) or len(spoken) >= _MIN_WORDS)
    else:
        is_strange = bool(read_as) and len(spoken) >= _TELLING_WORDS
    if not is_strange:
        return None
    place = (spoken[0][0], spoken[-1][1])
    named = tuple(sorted(code for code in read_as if code in NAMES))
    return ProofWarning.at("language", "source", source.text, place, named)
