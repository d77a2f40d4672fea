"""Noise in source text, so that a translator learns to read what people type: typing errors, other
case, and missing punctuation, accents and words.

One number determines all noise of a text, so that an example of an update is the same in any batch
and process, and after a resume. The noise needs no table of a keyboard or of a language: a wrong
letter is one of the other letters of the text, so it belongs to the same script.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from pydantic import Field

from dragoman.base.settings import Settings
from dragoman.forms.lexicon import words_in

_SHORTEST = 3
"""The letters of the shortest word that gets a typing error."""
_ACCENTS = frozenset({202, 220, 230})
"""The combining classes of marks that are attached to a letter, below it or above it. Vowel signs
and tone marks of scripts such as Devanagari and Thai have other classes and are kept."""


class NoiseSettings(Settings):
    """Noise in the source text of training (Belinkov and Bisk, 2018). Targets stay as they are."""

    typos: float = Field(default=0.0, ge=0, le=1)
    """The share of words with a typing error: two letters exchanged, or one letter left out,
    doubled or replaced. Words of one or two letters have none."""
    words: float = Field(default=0.0, ge=0, lt=1)
    """The share of words that are left out (word dropout)."""
    case: float = Field(default=0.0, ge=0, le=1)
    """The share of texts in lower case."""
    punctuation: float = Field(default=0.0, ge=0, le=1)
    """The share of texts without punctuation."""
    accents: float = Field(default=0.0, ge=0, le=1)
    """The share of texts whose letters have no accents."""
    texts: float = Field(default=0.5, gt=0, le=1)
    """The share of texts that may have noise; all other texts are read as they are."""

    KINDS: ClassVar = ("typos", "words", "case", "punctuation", "accents")

    @property
    def is_on(self) -> bool:
        """True if any text gets noise."""
        return any(getattr(self, kind) for kind in self.KINDS)


def with_noise(text: str, settings: NoiseSettings, seed: int) -> str:
    """Return a text with the noise that ``seed``, from 0, selects. A text that would be empty is
    returned as it is."""
    draw = np.random.default_rng(seed)
    if draw.random() >= settings.texts:
        return text
    noisy = text
    if draw.random() < settings.accents:
        noisy = without_accents(noisy)
    if draw.random() < settings.punctuation:
        noisy = without_punctuation(noisy)
    if draw.random() < settings.case:
        noisy = noisy.lower()
    if settings.words:
        noisy = _change_words(noisy, settings.words, draw, lambda word: "")
        noisy = " ".join(noisy.split())
    if settings.typos:
        letters = sorted({letter for letter in noisy if letter.isalpha()})
        noisy = _change_words(noisy, settings.typos, draw, lambda word: typo(word, letters, draw))
    return noisy if noisy.strip() else text


def typo(word: str, letters: list[str], draw: np.random.Generator) -> str:
    """Return a word with one typing error; ``letters`` are those that may replace another. A word
    of fewer than three letters is returned as it is. The first letter is never changed, because
    people rarely mistype it."""
    if len(word) < _SHORTEST:
        return word
    place = int(draw.integers(1, len(word)))
    kind = draw.integers(4)
    if kind == 0 and place + 1 < len(word) and word[place] != word[place + 1]:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if kind == 1:
        return word[:place] + word[place] + word[place:]
    others = [letter for letter in letters if letter not in (word[place], word[place].upper())]
    if kind == 2 and others:
        return word[:place] + others[int(draw.integers(len(others)))] + word[place + 1 :]
    return word[:place] + word[place + 1 :]


def without_accents(text: str) -> str:
    """Return a text whose letters have no accents: é becomes e. Signs that are letters of their own
    script, such as the vowels of Devanagari and the syllables of Korean, stay."""
    marks = unicodedata.normalize("NFD", text)
    kept = "".join(mark for mark in marks if unicodedata.combining(mark) not in _ACCENTS)
    return unicodedata.normalize("NFC", kept)


def without_punctuation(text: str) -> str:
    """Return a text without punctuation. Signs inside a word or a number (don't, 3.5) stay."""
    inside = {place for begin, end in words_in(text) for place in range(begin, end)}
    kept = (
        sign
        for place, sign in enumerate(text)
        if place in inside or not unicodedata.category(sign).startswith("P")
    )
    return " ".join("".join(kept).split())


def _change_words(
    text: str, share: float, draw: np.random.Generator, change: Callable[[str], str]
) -> str:
    """Change a share of the words of a text, each chosen by a draw. Numbers stay as they are."""
    parts, behind = [], 0
    for begin, end in words_in(text):
        word = text[begin:end]
        is_changed = draw.random() < share and not word[0].isdigit()
        changed = change(word) if is_changed else word
        parts += [text[behind:begin], changed]
        behind = end
    return "".join([*parts, text[behind:]])
