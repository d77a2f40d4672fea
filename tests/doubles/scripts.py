"""Text in ten scripts that a small random grammar writes. Not a test: tests import it.

Words are drawn letter by letter from a script's own characters, frequent and rare ones as in real
text (Zipf's law), and stand in sentences of a fixed order. Every word has an English one of the
same number, so that a script and English translate each other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple


class Script(NamedTuple):
    """How a language is written."""

    code: str
    """Of the language, as BCP 47 has it."""
    characters: str
    """What its words are made of."""
    longest: int
    """Characters of a word."""
    space: str
    """What stands between words."""
    end: str
    """What ends a sentence."""


def _span(first: int, last: int) -> str:
    return "".join(map(chr, range(first, last + 1)))


_KANA = _span(0x3042, 0x3093) + _span(0x30A2, 0x30F3)
SCRIPTS = {
    "Korean": Script("ko", _span(0xAC00, 0xD7A3)[::7], 4, " ", "."),
    "Japanese": Script("ja", _KANA + _span(0x4E00, 0x9FA5)[::9], 4, "", "。"),
    "Chinese": Script("zh", _span(0x4E00, 0x9FA5)[::5], 2, "", "。"),
    "Thai": Script("th", _span(0x0E01, 0x0E2E) + _span(0x0E40, 0x0E44), 6, "", " "),
    "Arabic": Script("ar", _span(0x0627, 0x063A) + _span(0x0641, 0x064A), 6, " ", "."),
    "Hindi": Script("hi", _span(0x0905, 0x0939) + _span(0x093E, 0x094D), 6, " ", "।"),
    "Amharic": Script("am", _span(0x1200, 0x1246) + _span(0x1260, 0x1286), 4, " ", "።"),
    "Georgian": Script("ka", _span(0x10D0, 0x10F0), 7, " ", "."),
    "Vietnamese": Script("vi", "aăâbcdđeêghiklmnoôơpqrstuưvxyạảấầẩậắằặẹẻếềểệỉịọỏốồổộớờởợụủứừửựỳỵ",
                         4, " ", "."),
    "emoji": Script("und", _span(0x1F600, 0x1F64F) + _span(0x1F400, 0x1F4FF), 1, " ", "🛑"),
}  # fmt: skip
"""By the name of the language that is written in it."""

ENGLISH = Script("en", "etaoinshrdlucmfwypvbgkqjxz", 7, " ", ".")
_WORDS = 4_000
_LONGEST = 9
"""Words of a sentence."""


@cache
def lexicon(script: Script) -> tuple[str, ...]:
    """``_WORDS`` words; every character that there are so many words for is in one of them."""
    draw = random.Random(script.code)
    letters = list(script.characters)
    draw.shuffle(letters)
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(letters))))

    def word(number: int) -> str:
        length = draw.randint(1, script.longest)
        drawn = draw.choices(letters, cum_weights=weights, k=length)
        return "".join([letters[number % len(letters)], *drawn[1:]])

    return tuple(word(number) for number in range(_WORDS))


def numbers(sentences: int, seed: int = 1) -> list[list[int]]:
    """Sentences as numbers of words: frequent ones oftener, no two sentences alike."""
    draw = random.Random(seed)
    weights = list(accumulate(1 / (rank + 20) for rank in range(_WORDS)))
    found: dict[tuple[int, ...], None] = {}
    while len(found) < sentences:
        length = draw.randint(2, _LONGEST)
        found[tuple(draw.choices(range(_WORDS), cum_weights=weights, k=length))] = None
    return [list(sentence) for sentence in found]


def written(script: Script, sentence: Sequence[int]) -> str:
    """A sentence of words of these numbers."""
    words = lexicon(script)
    return script.space.join(words[number] for number in sentence) + script.end


def tree(script: Script, sentence: Sequence[int]) -> str:
    """The same as a bracketed tree: its first words are a noun phrase, the others a verb phrase."""
    words = lexicon(script)
    first = 1 + len(sentence) // 3
    nouns = " ".join(f"(NN {words[number]})" for number in sentence[:first])
    verbs = " ".join(f"(VB {words[number]})" for number in sentence[first:])
    return f"(S (NP {nouns}) (VP {verbs}))"
