"""The source of a translation as the model reads it, and what is doubtful about it: words that the
run has never read, another language than the run's, and words that the translation leaves out.

Omissions are found by removing words from the source: a translation that does not depend on some
words is as probable without them (contrastive conditioning, Vamvas and Sennrich 2022). Three kinds
of words are removed: each single word, each stretch of words without attention from the
translation, and each group of adjacent words. Groups are needed for a clause that is left out:
removing one of its words makes the rest of it less sensible, and so does removing it inexactly, but
removing a few words from its middle does not. docs/experiments.md has the choice of the limits, and
how often the warnings are right.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dragoman.engine.alignment_head import Alignment
from dragoman.engine.engine import Engine
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


_LOOKED_AT = 0.3
"""A word of the source counts as attended to if a token of the translation gives it at least this
share of its attention."""
_STRETCH_GAINS = (0.45, 0.03)
"""Limits of the gain from removing words without attention, in nats and as a share of -log P; the
greater limit counts. If the translation becomes more probable by this much without the words, it
does not depend on them. The share matters for improbable translations, for which a gain means
little."""
_WORD_GAINS = (0.9, 0.05)
"""The limits of ``_STRETCH_GAINS`` for a single word, attended to or not."""
_COMMON_GAINS = (2.0, 0.05)
"""The limits of ``_STRETCH_GAINS`` for a common word, which may rightly have no counterpart."""
_FEW = 3
"""The number of adjacent words that are removed together, at every place."""
_HARDLY_MISSED = -1.0
"""If the gain from removing a group of words is below this, in nats, the translation depends on one
of them."""
_CLAUSE = 6
"""A stretch counts as left out if it has at least this many words and no group in it is missed.
Shorter stretches may be translated in other words: "there is a", "talking on his phone"."""
_COMMON = 0.4
"""The most frequent words, which together make up this share of all text, are common: articles,
"is", "of"."""
_HYPHENS = ("-", "‐", "‑")
_SHORT, _SHORT_COMMON = 3, 0.6
"""Words of at most ``_SHORT`` letters are common up to the larger share ``_SHORT_COMMON``: "her",
"up". Without a lexicon, all of them are common."""


@dataclass(frozen=True)
class Suspect:
    """Words that may have been left out."""

    place: Span
    least: tuple[float, float] | None
    """Limits of the gain, in nats and as a share of -log P; the greater limit counts. The words
    count as left out if the translation becomes more probable by this much without them. None for a
    group of adjacent words, which is judged together with the groups around it."""

    def is_left_out(self, with_them: float, without: float) -> bool:
        """Decide if the words are left out, by log P of the translation ``with_them`` in the source
        and ``without`` them."""
        if self.least is None:
            return False
        nats, share = self.least
        return without - with_them >= max(nats, -share * with_them)


@dataclass(frozen=True)
class Omissions:
    """The words of a source that its translation leaves out."""

    places: list[Span]
    """The words that seem to be left out; adjacent ones are joined."""
    covered: float
    """The share of the source's words that the translation depends on, from 0 to 1."""


def suspects_of(source: ReadSource, alignment: Alignment, lexicon: Lexicon | None) -> list[Suspect]:
    """Return the suspects of a source: words, groups of adjacent words, and stretches without
    attention.

    ``alignment`` (T, W): the attention of each token of the translation to each word; all zeros if
    it is not known.
    """
    stretches: list[list[Span]] = [[]]
    suspects = []
    looked_at = alignment.max(axis=0, initial=0.0) >= _LOOKED_AT
    if not alignment.any():
        looked_at[:] = True
    for place, was_seen in _with_hyphens(source, looked_at.tolist()):
        is_common = _is_common(source.at(place), lexicon, alone=True)
        suspects.append(Suspect(place, _COMMON_GAINS if is_common else _WORD_GAINS))
        if was_seen:
            stretches.append([])
        else:
            stretches[-1].append(place)
    for stretch in stretches:
        words = [source.at(place) for place in stretch]
        if not all(_is_common(word, lexicon, alone=len(words) == 1) for word in words):
            suspects.append(Suspect((stretch[0][0], stretch[-1][1]), _STRETCH_GAINS))
    for first in range(len(source.words) - _FEW + 1 if len(source.words) > _FEW else 0):
        few = source.words[first : first + _FEW]
        suspects.append(Suspect((few[0][0], few[-1][1]), None))
    return suspects


def omissions(
    engine: Engine,
    sources: Sequence[ReadSource],
    translations: Sequence[Sequence[int]],
    suspects: Sequence[Sequence[Suspect]],
) -> list[Omissions]:
    """Return, for each source, those of its ``suspects`` on which its translation does not depend.
    ``translations``: tokens without special symbols."""
    texts, outputs = [], []
    for source, tokens, some in zip(sources, translations, suspects, strict=True):
        if some:
            texts += [source.text, *(source.without(suspect.place) for suspect in some)]
            outputs += [tokens] * (len(some) + 1)
    if not texts:
        return [Omissions([], 1.0) for _ in sources]
    scored = engine.score(engine.source.values(texts), outputs)
    log_probabilities = iter([hypothesis.log_probability for hypothesis in scored])
    by_source = []
    for source, some in zip(sources, suspects, strict=True):
        whole = next(log_probabilities) if some else 0.0
        without = [next(log_probabilities) for _ in some]
        both = list(zip(some, without, strict=True))
        places = [suspect.place for suspect, value in both if suspect.is_left_out(whole, value)]
        few = [(suspect.place, value - whole) for suspect, value in both if suspect.least is None]
        places += _clauses(few)
        missed = [place for place, gain in few if gain >= _HARDLY_MISSED]
        by_source.append(
            Omissions(_together(source.text, places), _share_covered(source, [*places, *missed]))
        )
    return by_source


def _clauses(few: Sequence[tuple[Span, float]]) -> list[Span]:
    """Return stretches of the source that the translation hardly needs: every group of adjacent
    words in them can be removed at almost no loss. ``few``: all groups in order, each with the
    change of log P of the translation when the group is removed."""
    clauses = []
    for hardly_missed, group in groupby(few, key=lambda pair: pair[1] >= _HARDLY_MISSED):
        places = [place for place, _ in group]
        if hardly_missed and len(places) + _FEW - 1 >= _CLAUSE:
            clauses.append((places[0][0], places[-1][1]))
    return clauses


def _share_covered(source: ReadSource, uncovered: Sequence[Span]) -> float:
    """Return the share of words outside the ``uncovered`` places; 1 for a source without words."""
    if not source.words:
        return 1.0
    outside = [
        not any(begin < last and first < end for begin, end in uncovered)
        for first, last in source.words
    ]
    return sum(outside) / len(outside)


def _is_common(word: str, lexicon: Lexicon | None, *, alone: bool) -> bool:
    """Return True for a common word. ``alone``: no adjacent word was left out."""
    is_short = len(word) <= _SHORT and word.isascii()
    if lexicon is None:
        return is_short
    share = _SHORT_COMMON if is_short and alone else _COMMON
    return lexicon.share_before(word) < share


def _with_hyphens(source: ReadSource, attended: Sequence[bool]) -> list[tuple[Span, bool]]:
    """Return the place of each word, and whether it was ``attended`` to. Words joined by a hyphen
    count as one: "middle-aged" may be translated without a "middle"."""
    joined: list[tuple[Span, bool]] = []
    for (begin, end), was_seen in zip(source.words, attended, strict=True):
        (first, last), before = joined[-1] if joined else ((0, 0), False)
        if joined and source.text[last:begin] in _HYPHENS:
            joined[-1] = ((first, end), before or was_seen)
        else:
            joined.append(((begin, end), was_seen))
    return joined


def _together(text: str, places: Sequence[Span]) -> list[Span]:
    """Join places that overlap or are separated only by space."""
    joined: list[Span] = []
    for begin, end in sorted(places):
        if joined and not text[joined[-1][1] : begin].strip():
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
