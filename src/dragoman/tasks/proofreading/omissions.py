"""Words of a source that its translation leaves out, asked of the model by taking them away.

A translation that owes nothing to some words is as probable without them (contrastive
conditioning, Vamvas and Sennrich 2022). Every word is asked about by itself, and each stretch of
words that no token of the translation looked at as a whole. How the limits were chosen, and how
often they are right: docs/experiments.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.forms.lexicon import Lexicon, Span
from dragoman.tasks.alignment import Alignment
from dragoman.tasks.engine import Engine
from dragoman.tasks.proofreading.source import ReadSource

_LOOKED_AT = 0.3
"""A word that some token of the translation gave so much of its attention was looked at."""
_STRETCH_GAINS = (0.45, 0.03)
"""Nats, and share of the whole -log P. A translation owes nothing to words that were not looked at
if it gains so much by taking them away, the greater of the two: what was improbable before shows
little by being less so."""
_WORD_GAINS = (0.9, 0.05)
"""The same for a word by itself, whether it was looked at or not."""
_COMMON_GAINS = (2.0, 0.05)
"""The same for a common word, which need not have anything that stands for it."""
_COMMON = 0.4
"""The commonest words, which together are so much of all that was read: articles, "is", "of"."""
_SHORT, _SHORT_COMMON = 3, 0.6
"""Letters of words that are common up to this share: "her", "up". Where it is not known what was
read, all of them are."""


@dataclass(frozen=True)
class Suspect:
    """Words that may have been left out."""

    place: Span
    least: tuple[float, float]
    """Nats, and share of -log P: what a translation gains at least that has left them out."""

    def gains(self, with_them: float, without: float) -> bool:
        """``with_them``, ``without``: log P of the translation."""
        nats, share = self.least
        return without - with_them >= max(nats, -share * with_them)


def suspects_of(source: ReadSource, alignment: Alignment, lexicon: Lexicon | None) -> list[Suspect]:
    """What is asked about: words, and stretches of them that nothing looked at.

    ``alignment``: (T, W) how much each token of the translation looked at each word; all zeros
    where nobody knows.
    """
    stretches: list[list[Span]] = [[]]
    suspects = []
    looked_at = alignment.max(axis=0, initial=0.0) >= _LOOKED_AT
    if not alignment.any():
        looked_at[:] = True
    for place, was_seen in zip(source.words, looked_at, strict=True):
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
    return suspects


def omitted(
    engine: Engine,
    sources: Sequence[ReadSource],
    translations: Sequence[Sequence[int]],
    suspects: Sequence[Sequence[Suspect]],
) -> list[list[Span]]:
    """Of what is asked about in each source, that to which its translation, tokens without special
    symbols, owes nothing."""
    texts, outputs = [], []
    for source, tokens, some in zip(sources, translations, suspects, strict=True):
        if some:
            texts += [source.text, *(source.without(one.place) for one in some)]
            outputs += [tokens] * (len(some) + 1)
    if not texts:
        return [[] for _ in sources]
    scored = engine.score(engine.source.values(texts), outputs)
    log_probabilities = iter([one.log_probability for one in scored])
    found = []
    for source, some in zip(sources, suspects, strict=True):
        whole = next(log_probabilities) if some else 0.0
        places = [one.place for one in some if one.gains(whole, next(log_probabilities))]
        found.append(_together(source.text, places))
    return found


def _is_common(word: str, lexicon: Lexicon | None, *, alone: bool) -> bool:
    """``alone``: whether nothing beside it was left out too."""
    is_short = len(word) <= _SHORT and word.isascii()
    if lexicon is None:
        return is_short
    share = _SHORT_COMMON if is_short and alone else _COMMON
    return lexicon.share_before(word) < share


def _together(text: str, places: Sequence[Span]) -> list[Span]:
    """Places that overlap, or have nothing but space between them, as one."""
    joined: list[Span] = []
    for begin, end in sorted(places):
        if joined and not text[joined[-1][1] : begin].strip():
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
