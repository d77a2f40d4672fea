"""A source as a model reads it, and where its words stand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dragoman.forms.form import Form
from dragoman.forms.lexicon import Span, words_in
from dragoman.forms.pieces import pieces_in


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
