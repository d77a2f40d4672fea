"""Finds words that are repeated in a row, as a decoder writes when it gets stuck.

Natural language repeats words too ("die die Straße überqueren", "had had"), so short words count
only from the third time on (counts in human translations: docs/experiments.md).
"""

from __future__ import annotations

import re

from dragoman.forms.lexicon import Span, words_in

_LONG = 4
"""A word of at least this many letters may not occur twice in a row."""
_LONG_SYLLABLES = 2
"""The value of ``_LONG`` for scripts in which a character is a syllable or a word."""
_LONGEST = 30
"""The most words of a repeated unit: searching for longer ones takes quadratic time."""
_SYLLABIC = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_UNSPACED = re.compile(r"(\w{2,40}?)\1{2,}|(\w{4,40}?)\2")


def repetitions(text: str, *, spaced: bool = True) -> list[Span]:
    """Find words, or groups of words, that are repeated with only space between them.

    The capital letter of the first word is ignored. ``spaced``: the language writes spaces between
    words.
    """
    if not spaced:
        return [match.span() for match in _UNSPACED.finditer(text)]
    repeats = []
    for places in _stretches(text):
        words = [text[slice(*place)] for place in places]
        if places and places[0][0] == 0 and words[0].lower() in words[1:]:
            words[0] = words[0].lower()
        at = 0
        while at < len(words):
            size, times = _longest_repeat(words, at)
            if times > 1:
                last = at + size * times
                if times > 2 or _is_long(words[at : at + size]):
                    repeats.append((places[at][0], places[last - 1][1]))
                at = last
            else:
                at += 1
    return repeats


def _stretches(text: str) -> list[list[Span]]:
    """Group the words of a text: words with only space between them are in one group."""
    stretches: list[list[Span]] = []
    for place in words_in(text):
        if stretches and not text[stretches[-1][-1][1] : place[0]].strip():
            stretches[-1].append(place)
        else:
            stretches.append([place])
    return stretches


def _longest_repeat(words: list[str], at: int) -> tuple[int, int]:
    """Return the number of words, and of repetitions, of the unit that is repeated from the word
    ``at`` on."""
    best = (1, 1)
    for size in range(1, min(_LONGEST, (len(words) - at) // 2) + 1):
        unit, times = words[at : at + size], 1
        while words[at + times * size : at + (times + 1) * size] == unit:
            times += 1
        if times > 1 and size * times > best[0] * best[1]:
            best = (size, times)
    return best


def _is_long(words: list[str]) -> bool:
    letters = "".join(words)
    if len(words) > 1:
        return True
    return len(letters) >= (_LONG_SYLLABLES if _SYLLABIC.search(letters) else _LONG)
