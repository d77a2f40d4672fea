"""Words of a source that a run has never read, and sources of another language than it reads."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from dragoman.forms.identification import identify
from dragoman.forms.languages import NAMES, base
from dragoman.forms.lexicon import Lexicon, Span
from dragoman.forms.pieces import UNKNOWN, is_byte
from dragoman.tasks.translation.proofreading.source import ReadSource, touching
from dragoman.tasks.translation.proofreading.warning import ProofWarning

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
