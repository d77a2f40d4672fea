"""Tokens of a translation as the words that people read, each with its probability.

A word's probability is the product over its tokens: how probable the model held just this word,
given the source and the words before it. It says how sure the model was, not whether it is right.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dragoman.forms.pieces import BYTE, SPACE, is_byte

_WORD = re.compile(r"\S+")
_VISIBLE = re.compile(r"\S")
_ENTITIES = {
    "&amp;": "&", "&#124;": "|", "&lt;": "<", "&gt;": ">", "&apos;": "'", "&quot;": '"',
    "&#91;": "[", "&#93;": "]",
}  # fmt: skip
"""What Moses' tokeniser writes for characters with a meaning of their own."""
_CHARACTER = re.compile("|".join((*map(re.escape, _ENTITIES), ".")), re.DOTALL)


@dataclass(frozen=True)
class ShownWord:
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
) -> list[ShownWord]:
    """The words of a translation ``text`` whose tokens are written ``pieces``.

    ``log_probabilities`` may have one entry more, of the end symbol. ``spaced`` is False for a
    language written without spaces. Where the tokens spell the text but for its spaces and some
    entities (Moses' detokeniser was at it), its own are taken; where they do not spell it at all
    (a normalisation in between), words stand between spaces and share the tokens out.
    """
    if not pieces:
        return []
    words = _spelt(pieces, log_probabilities, spaced=spaced)
    if _joined(words) == text:
        return words
    units = _units(text, pieces)
    if units is not None:
        sums = [sum(log_probabilities[unit.first : unit.end]) for unit in units]
        words = _spelt([unit.spelt for unit in units], sums, spaced=spaced)
        if _joined(words) == text:
            return [_of_tokens(word, units) for word in words]
    return _shared_out(text, log_probabilities[: len(pieces)])


def _joined(words: Sequence[ShownWord]) -> str:
    return "".join(word.before + word.text for word in words)


def _spelt(
    pieces: Sequence[str], log_probabilities: Sequence[float], *, spaced: bool
) -> list[ShownWord]:
    """The words that ``pieces`` spell."""
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
                ShownWord(
                    before=surface[: len(surface) - len(body)],
                    text=body,
                    log_probability=sum(log_probabilities[i] for i in part),
                    first=part[0],
                    count=len(part),
                )
            )
    if words[0].before:
        words[0] = ShownWord("", words[0].text, words[0].log_probability, 0, words[0].count)
    return _with_text(words)


class _Unit(NamedTuple):
    """Tokens that spell some characters between them, and the space in front of these."""

    spelt: str
    first: int
    end: int


def _units(text: str, pieces: Sequence[str]) -> list[_Unit] | None:
    """Tokens whose characters are those of ``text``, where spaces may be elsewhere and entities
    are one character: as little together as can be; None where more than that differs."""
    spelt, owners = bytearray(), list[int]()
    for number, piece in enumerate(pieces):
        byte = BYTE.match(piece)
        data = bytes([int(byte[1], 16)]) if byte else piece.replace(SPACE, " ").encode()
        spelt += data
        owners += [number] * len(data)
    try:
        written = spelt.decode()
    except UnicodeDecodeError:
        return None
    wanted = _VISIBLE.finditer(text)
    units: list[_Unit] = []
    place = read = 0
    for match in _CHARACTER.finditer(written):
        begin, place = place, place + len(match[0].encode())
        if match[0].isspace():
            continue
        found = next(wanted, None)
        if found is None or found[0] != _ENTITIES.get(match[0], match[0]):
            return None
        character = text[read : found.start()].replace(" ", SPACE) + found[0]
        read = found.end()
        end = owners[place - 1] + 1
        if units and owners[begin] < units[-1].end:  # a token that is in the last unit too
            units[-1] = _Unit(units[-1].spelt + character, units[-1].first, end)
        else:
            units.append(_Unit(character, units[-1].end if units else 0, end))
    if not units or next(wanted, None) is not None:
        return None
    behind = text[len(text.rstrip()) :].replace(" ", SPACE)
    return [*units[:-1], _Unit(units[-1].spelt + behind, units[-1].first, len(pieces))]


def _of_tokens(word: ShownWord, units: Sequence[_Unit]) -> ShownWord:
    """A word that counts units, counting their tokens."""
    first, last = units[word.first], units[word.first + word.count - 1]
    return replace(word, first=first.first, count=last.end - first.first)


def _shared_out(text: str, log_probabilities: Sequence[float]) -> list[ShownWord]:
    """The words of a text whose tokens do not spell it, each with its share of the tokens.

    Shares go by characters, so they are a guess. A word too short for a token joins the next.
    """
    tokens = len(log_probabilities)
    words: list[ShownWord] = []
    first = begin = 0
    ends = [match.end() for match in _WORD.finditer(text)]
    for place in [*ends[:-1], len(text)]:  # the last word has the space behind it too
        end = tokens * place // len(text) if ends else 0
        if end > first:
            part = text[begin:place]
            body = part.lstrip()
            share = sum(log_probabilities[first:end])
            words.append(ShownWord(part[: len(part) - len(body)], body, share, first, end - first))
            first, begin = end, place
    return words or [ShownWord("", text, sum(log_probabilities), 0, tokens)]


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
    """What some tokens spell. Bytes that make a character together are read together; those that
    make none are left out."""
    spelt = bytearray()
    for piece in pieces:
        byte = BYTE.match(piece)
        spelt += bytes([int(byte[1], 16)]) if byte else piece.replace(SPACE, " ").encode()
    return spelt.decode("utf-8", "ignore").replace("\n", " ")


def _with_text(words: list[ShownWord]) -> list[ShownWord]:
    """A lone space token joins the word that follows it."""
    joined: list[ShownWord] = []
    for word in words:
        last = joined[-1] if joined else None
        if last is not None and not last.text:
            joined[-1] = ShownWord(
                last.before + word.before,
                word.text,
                last.log_probability + word.log_probability,
                last.first,
                last.count + word.count,
            )
        else:
            joined.append(word)
    return joined
