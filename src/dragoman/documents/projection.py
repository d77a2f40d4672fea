"""The places of a sentence's tags in its translation, if they keep their order.

A sentence is translated as a whole; its tags divide it into stretches. The words of the translation
are divided among the same stretches, in the same order, so that together they looked as much as
possible at the stretch that they are given to: with g(w, j) the share of its attention that word w
gave to stretch j,

    max over j(1) <= j(2) <= ...  of  sum over w of g(w, j(w)) - LEFT_EMPTY x (elements left empty)

found by dynamic programming. Tags therefore keep their order and nesting whatever the model does;
where two languages order the marked words differently, the least wrong place is taken. An element
that had words has one again if there are enough, be it one that stands in for a word that the
translation left out: a link without words cannot be followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.engine.alignment_head import Alignment
from dragoman.formats.units.document import Code
from dragoman.forms.shown_words import ShownWord, piece_spans

LEFT_EMPTY = 1000.0
"""The cost of giving no word to an element that had some: more than all that can be gained."""
NEVER = -1e9


def project(
    tags: Sequence[Code], source: str, source_pieces: Sequence[str], words: Sequence[ShownWord],
    alignment: Alignment,
) -> list[str]:  # fmt: skip
    """The translation, cut where the tags of its sentence stand: one part more than tags.

    ``source_pieces`` and ``words``: the tokens of the sentence ``source`` and of its translation;
    their end symbols are left out. ``tags`` have their places in ``source``. Joined, the parts are
    the translation.
    """
    if not words:
        return [""] * (len(tags) + 1)
    edges = np.array([0, *(tag.place for tag in tags), len(source)], dtype=np.float64)
    stretches = [source[int(begin) : int(end)] for begin, end in pairwise(edges)]
    needs_words = np.array(
        [
            is_inside and any(character.isalnum() for character in stretch)
            for stretch, is_inside in zip(stretches, _inside(tags), strict=True)
        ]
    )
    of_words = np.stack([alignment[w.first : w.first + w.count].mean(axis=0) for w in words])
    gains = of_words @ shares(piece_spans(source_pieces, len(source)), edges)  # (W, K + 1)
    gains[:, [not stretch.strip() for stretch in stretches]] = -1.0
    of_word = _divide_words_then_marks(gains, needs_words, words)
    cuts = np.searchsorted(of_word, np.arange(1, len(stretches)))  # words before each tag
    return _parts(tags, source, words, _marks_stay_behind(tags, words, cuts.tolist()))


def shares(of_tokens: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """(S, K + 1) the part of each token in each stretch."""
    begin, end = of_tokens[:, :1], of_tokens[:, 1:]
    overlap = np.minimum(end, edges[1:]) - np.maximum(begin, edges[:-1])
    shares: NDArray[np.float64] = np.clip(overlap, 0, None) / np.maximum(end - begin, 1e-9)
    return shares


def _inside(tags: Sequence[Code]) -> list[bool]:
    """True for each stretch inside an element: right behind its begin, or before its end."""
    return [
        (number > 0 and tags[number - 1].opens) or (number < len(tags) and tags[number].closes)
        for number in range(len(tags) + 1)
    ]


def _divide_words_then_marks(
    gains: NDArray[np.float64], needs_words: NDArray[np.bool_], words: Sequence[ShownWord]
) -> NDArray[np.int64]:
    """``_divide``, where marks (a full stop) do not count as words of an element."""
    spoken = np.array([any(character.isalnum() for character in word.text) for word in words])
    if spoken.all() or not spoken.any():
        return _divide(gains, needs_words)
    fixed = gains.copy()
    fixed[spoken] = NEVER
    fixed[spoken, _divide(gains[spoken], needs_words)] = 0.0
    return _divide(fixed, np.zeros_like(needs_words))


def _divide(gains: NDArray[np.float64], needs_words: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(W, K + 1) -> (W,) the stretch of each word, never decreasing, that gains most."""
    count = len(needs_words)
    skipped = LEFT_EMPTY * np.cumsum(needs_words)  # the cost of leaving empty all up to here
    before = np.concatenate([[0.0], skipped[:-1]])
    places = np.arange(count)
    came_from = np.empty(gains.shape, dtype=np.int32)
    best = gains[0] - before
    for word in range(1, len(gains)):
        # The best stretch i < j of the word before, all between i and j left empty.
        onwards = best + skipped
        highest = np.maximum.accumulate(onwards)
        who = np.maximum.accumulate(np.where(onwards >= highest, places, 0))
        moved = np.concatenate([[-np.inf], highest[:-1]]) - before
        stays = best >= moved
        came_from[word] = np.where(stays, places, np.concatenate([[0], who[:-1]]))
        best = np.where(stays, best, moved) + gains[word]
    chosen = np.empty(len(gains), dtype=np.int64)
    # Of equal ones the last: what looked at nothing stays out of an element that has ended.
    chosen[-1] = count - 1 - int((best + skipped)[::-1].argmax())
    for word in range(len(gains) - 1, 0, -1):
        chosen[word - 1] = came_from[word, chosen[word]]
    return chosen


def _marks_stay_behind(
    tags: Sequence[Code], words: Sequence[ShownWord], cuts: Sequence[int]
) -> list[int]:
    """A comma stays with the word that it follows where an element would begin with it."""
    moved = [*cuts, len(words)]
    for number in range(len(tags) - 1, -1, -1):
        while tags[number].opens and 0 < moved[number] < moved[number + 1]:
            word = words[moved[number]]
            if word.before or any(character.isalnum() for character in word.text):
                break
            moved[number] += 1
    return moved[:-1]


def _parts(
    tags: Sequence[Code], source: str, words: Sequence[ShownWord], cuts: Sequence[int]
) -> list[str]:
    """The words between the tags; ``cuts``: how many words stand before each tag."""
    texts = [word.before + word.text for word in words]
    edges = [0, *cuts, len(words)]
    parts = ["".join(texts[a:b]) for a, b in pairwise(edges)]
    # The space before a word that follows several tags goes where the sentence had one.
    first = 0
    while first < len(tags):
        last = first
        while last + 1 < len(tags) and cuts[last + 1] == cuts[first]:
            last += 1
        if 0 < cuts[first] < len(words) and (space := words[cuts[first]].before):
            ended = _before_space(tags[first : last + 1], source)
            if ended <= last - first:
                parts[last + 1] = parts[last + 1].removeprefix(space)
                parts[first + ended] += space
        first = last + 1
    return parts


def _before_space(tags: Sequence[Code], source: str) -> int:
    """The number of tags before the space, of those that are between two words."""
    for number, tag in enumerate(tags):
        if source[tag.place - 1 : tag.place].isspace():
            return number
    for number in range(len(tags), 0, -1):
        if source[tags[number - 1].place : tags[number - 1].place + 1].isspace():
            return number
    return next((n for n, tag in enumerate(tags) if not tag.closes), len(tags))
