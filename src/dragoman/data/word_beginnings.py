"""Words of any language, cut to their beginnings, so that inflections count as one; scripts without
spaces are read character by character."""

from __future__ import annotations

import re

_WORDS = 16
"""Of a side that are looked at; a dictionary grows with their square."""
_CHARACTERS = 400
"""Of a side that are looked at, at most."""
_WORD = re.compile(r"[^\W\d_]+|\d+")
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_HANGUL = re.compile("[\uac00-\ud7a3]")


def count_spaceless(text: str) -> int:
    """How many of its characters belong to scripts that write no spaces between words."""
    return 0 if text.isascii() else len(_SPACELESS.findall(text))


def words_of(text: str) -> list[str]:
    """The first words of a text, cut to their beginnings."""
    words: list[str] = []
    for word in _WORD.findall(text[:_CHARACTERS].lower()):
        if _SPACELESS.match(word):
            words.extend(word)
        else:
            words.append(word[: 2 if _HANGUL.match(word) else 5])
        if len(words) >= _WORDS:
            break
    return words[:_WORDS]
