"""Tokens of a translation as the words that people read, each with its probability.

A word's probability is the product over its tokens: how probable the model held just this word,
given the source and the words before it. It says how sure the model was, not whether it is right.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

SPACE = "▁"
"""U+2581, which SentencePiece writes for a space."""

_SPACED = re.compile(r"(\s*)(\S+\s*\Z|\S+)")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>\Z")


@dataclass(frozen=True)
class Word:
    """A word, or marks that stand beside one."""

    before: str
    """The space in front of it; ``before`` and ``text`` of all words joined are the translation."""
    text: str
    log_probability: float
    """Of the whole word, in nats."""
    first: int
    """Number of its first token."""
    count: int
    """How many tokens it has."""

    @property
    def probability(self) -> float:
        return min(1.0, math.exp(self.log_probability))


def words_of(
    text: str,
    pieces: Sequence[str],
    log_probabilities: Sequence[float],
    *,
    spaced: bool = True,
) -> list[Word]:
    """The words of a translation ``text`` whose tokens are written ``pieces``.

    ``log_probabilities`` may have one entry more, of the end symbol. ``spaced`` is False for a
    language written without spaces. Where the tokens do not spell the text (a normalisation in
    between), the text is one word.
    """
    if not pieces:
        return []
    runs: list[list[int]] = []
    for number, piece in enumerate(pieces):
        if not runs or piece.startswith(SPACE) or not spaced:
            runs.append([])
        runs[-1].append(number)
    words = []
    for run in runs:
        for part in _peel(run, pieces):
            surface = _spell([pieces[i] for i in part])
            body = surface.lstrip(" ")
            words.append(
                Word(
                    before=surface[: len(surface) - len(body)],
                    text=body,
                    log_probability=sum(log_probabilities[i] for i in part),
                    first=part[0],
                    count=len(part),
                )
            )
    if words[0].before:
        words[0] = Word("", words[0].text, words[0].log_probability, 0, words[0].count)
    words = _with_text(words)
    if "".join(word.before + word.text for word in words) == text:
        return words
    return [Word("", text, sum(log_probabilities[: len(pieces)]), 0, len(pieces))]


def words_by_spaces(text: str, tokens: int) -> list[Word]:
    """The words of a text whose ``tokens`` do not spell it, each with its share of the tokens.

    Shares go by characters, so they are a guess; probabilities are left out.
    """
    words: list[Word] = []
    for found in _SPACED.finditer(text):
        first = min(tokens - 1, tokens * found.start() // len(text))
        end = max(first + 1, tokens * found.end() // len(text))
        words.append(Word(found[1], found[2], 0.0, first, end - first))
    return words


def is_byte(piece: str) -> bool:
    """Whether a token stands for one byte of a character."""
    return _BYTE.match(piece) is not None


def _peel(run: list[int], pieces: Sequence[str]) -> list[list[int]]:
    """Tokens between two spaces -> marks in front, the word, marks behind."""
    begin, end = 0, len(run)
    while begin < end and _is_mark(pieces[run[begin]]):
        begin += 1
    while end > begin and _is_mark(pieces[run[end - 1]]):
        end -= 1
    return [part for part in (run[:begin], run[begin:end], run[end:]) if part]


def _is_mark(piece: str) -> bool:
    bare = piece.removeprefix(SPACE)
    if is_byte(piece):
        return False
    return bool(bare) and all(unicodedata.category(c).startswith("P") for c in bare)


def _spell(pieces: Sequence[str]) -> str:
    """What some tokens spell; bytes that make a character together are read together."""
    spelt = bytearray()
    for piece in pieces:
        byte = _BYTE.match(piece)
        spelt += bytes([int(byte[1], 16)]) if byte else piece.replace(SPACE, " ").encode()
    return spelt.decode("utf-8", "replace").replace("\n", " ")


def _with_text(words: list[Word]) -> list[Word]:
    """A lone space token joins the word that follows it."""
    joined: list[Word] = []
    for word in words:
        last = joined[-1] if joined else None
        if last is not None and not last.text:
            joined[-1] = Word(
                last.before + word.before,
                word.text,
                last.log_probability + word.log_probability,
                last.first,
                last.count + word.count,
            )
        else:
            joined.append(word)
    return joined
