"""The source of a translation as the model reads it, its unknown words, and a check of whether it
is in the run's language."""

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
from dragoman.forms.shown_words import UNKNOWN, is_byte, pieces_in
from dragoman.tasks.translation.proofreading.plain import ProofWarning


@dataclass(frozen=True)
class ReadSource:
    """The source of a translation as S tokens and W words."""

    text: str
    tokens: list[int]
    """The tokens, without the end symbol, as in ``pieces`` and ``spans``."""
    pieces: list[str]
    spans: NDArray[np.float64]
    """The begin and end (S, 2) of each token in the text."""
    words: list[Span]
    """The words, or the pieces in a language without spaces."""

    @classmethod
    def of(cls, form: Form, text: str) -> Self:
        """Read a text with a form; a form that reads no text gives an empty source."""
        if not form.reads:
            return cls("", [], [], np.zeros((0, 2)), [])
        (tokens,) = form.tokens([text])
        pieces, spans = pieces_in(form, text)
        words = words_in(text) if form.spaced else touching(spans, apart=True)
        return cls(text, tokens, pieces, spans, words)

    def at(self, place: Span) -> str:
        """Return the text of a span."""
        return self.text[slice(*place)]

    @cached_property
    def members(self) -> NDArray[np.float64]:
        """(S, W): 1 where a token overlaps a word, otherwise 0."""
        words = np.array(self.words, dtype=np.float64).reshape(-1, 2)
        begin, end = self.spans[:, :1], self.spans[:, 1:]
        overlap = np.minimum(end, words[:, 1]) - np.maximum(begin, words[:, 0])
        return (overlap > 1e-6).astype(np.float64)

    def without(self, place: Span) -> str:
        """Return the text without a span, and without the extra space that this would leave."""
        before, behind = self.text[: place[0]].rstrip(), self.text[place[1] :]
        if not before:
            return behind.lstrip()
        return before + behind if behind[:1].strip() else f"{before} {behind.lstrip()}".rstrip()


def touching(spans: NDArray[np.float64], *, apart: bool = False) -> list[Span]:
    """Return the places of tokens (``spans``) in whole characters. Tokens that touch are joined,
    unless ``apart`` is set."""
    places: list[Span] = []
    for begin, end in spans:
        first, last = round(begin), round(end)
        if places and not apart and places[-1][1] >= first:
            places[-1] = (places[-1][0], max(last, places[-1][1]))
        elif last > first:
            places.append((first, last))
    return places


_WORD_OF_PARTS = 4.0
"""An unknown word whose pieces have at least this many letters on average counts as composed of
known parts: a compound or an inflection."""
_STRANGE = 0.6
"""A sentence with at least this share of words never read may be in another language."""
_MIN_WORDS = 3
"""The fewest words of a sentence that is judged by the share of unknown words alone."""
_TELLING_WORDS = 5
"""The fewest words from which function words identify a language without a lexicon."""
_SIGNS = frozenset("'\"‘’‚‛“”„‟«»‹›-‐‑‒–—―…,.;:!?()[]{}¡¿、。· \t\n\r")
"""Signs that a translation may leave out without harm."""


def unknown_words(source: ReadSource, lexicon: Lexicon | None) -> list[Span]:
    """Return the places of words and signs that the run has never read; those that touch, such as
    "<b>", are joined. Without a lexicon, these are the words and signs that the vocabulary cannot
    write."""
    unreadable = np.array([piece == UNKNOWN or is_byte(piece) for piece in source.pieces], bool)
    places = []
    for place, members in zip(source.words, source.members.T > 0, strict=True):
        is_new = lexicon is not None and _is_new(source.at(place), int(members.sum()), lexicon)
        if is_new or (unreadable & members).any():
            places.append(place)
    signs = touching(source.spans[unreadable & ~(source.members > 0).any(axis=1)])
    places += [place for place in signs if set(source.at(place)) - _SIGNS]
    return touching(np.array(sorted(places)).reshape(-1, 2))


def _is_new(word: str, pieces: int, lexicon: Lexicon) -> bool:
    """Return True if a word of ``pieces`` pieces was never read, and is not composed of parts that
    were."""
    if lexicon.has(word):
        return False
    letters = sum(unicodedata.category(c)[0] == "L" for c in unicodedata.normalize("NFD", word))
    return letters < _WORD_OF_PARTS * pieces


def another_language(
    source: ReadSource, unknown: Sequence[Span], lexicon: Lexicon | None, language: str
) -> ProofWarning | None:
    """Return a warning if a source is not in ``language``, the source language of the run, else
    None. ``unknown``: the words that the run has never read."""
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
