"""Subword pieces as a vocabulary writes them, with their places in a text; and the words of a
translation as people read them, each with its probability.

A word's probability is the product over its tokens: the model's probability of this word, given
the source and the words before it. It shows how sure the model was, not whether it is right.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.forms.form import Form
from dragoman.forms.subwords.sampling import SPACE

_WORD = re.compile(r"\S+")
_VISIBLE = re.compile(r"\S")
_ENTITIES = {
    "&amp;": "&", "&#124;": "|", "&lt;": "<", "&gt;": ">", "&apos;": "'", "&quot;": '"',
    "&#91;": "[", "&#93;": "]",
}  # fmt: skip
"""The entities that Moses' tokeniser writes for special characters."""
_CHARACTER = re.compile("|".join((*map(re.escape, _ENTITIES), ".")), re.DOTALL)
BYTE = re.compile(r"<0x([0-9A-F]{2})>\Z")
"""The written form of a token that is one byte of a character."""
UNKNOWN = "<unk>"
_CHUNK = re.compile(r"\S+")


def is_byte(piece: str) -> bool:
    """Return True for a token that is one byte of a character."""
    return BYTE.match(piece) is not None


def piece_spans(pieces: Sequence[str], length: int) -> NDArray[np.float64]:
    """Return (S, 2) the begin, without the space before it, and the end of each token in a text
    of ``length`` characters.

    They are exact if the tokens spell the text, and proportional if it was normalised.
    """
    spans = np.zeros((len(pieces), 2))
    end = -1.0 if pieces and pieces[0].startswith(SPACE) else 0.0  # the space before every text
    unknown = _size_of_unknown(pieces, length - end)
    for number, piece in enumerate(pieces):
        begin, end = end, end + (unknown if piece == UNKNOWN else _size(piece))
        spans[number] = begin + (piece.startswith(SPACE) and len(piece) > 1), end
    return np.clip(spans, 0, None) * (length / end if end > 0 else 1.0)


def pieces_in(form: Form, text: str) -> tuple[list[str], NDArray[np.float64]]:
    """Return the pieces of a text, without the end symbol, and their begins and ends, (S, 2).

    Each run between two spaces is cut by itself if that gives the same tokens, so that a
    normalised or unknown run does not shift the others.
    """
    (tokens,) = form.tokens([text])
    pieces = form.names_of(tokens)
    chunks = list(_CHUNK.finditer(text))
    apart = form.tokens([chunk[0] for chunk in chunks])
    if [token for chunk in apart for token in chunk] != tokens:
        return pieces, piece_spans(pieces, len(text))
    spans = [
        chunk.start() + _spans_in(form.names_of(of_chunk), chunk[0])
        for chunk, of_chunk in zip(chunks, apart, strict=True)
    ]
    return pieces, np.concatenate(spans) if spans else np.zeros((0, 2))


def _spans_in(pieces: Sequence[str], text: str) -> NDArray[np.float64]:
    """Return (S, 2) begins and ends; an unknown piece ends where the next one is spelt."""
    spans, at = [], 0
    for number, piece in enumerate(pieces):
        letters, behind = piece.removeprefix(SPACE), pieces[number + 1 : number + 2]
        end = at + len(letters) if text.startswith(letters, at) else -1
        if piece == UNKNOWN:
            end = text.find(behind[0], at + 1) if behind else len(text)
        if end < at:  # the text was normalised, or written byte by byte
            return piece_spans(pieces, len(text))
        spans.append((at, end))
        at = end
    if at < len(text):
        return piece_spans(pieces, len(text))
    return np.array(spans, dtype=np.float64).reshape(-1, 2)


def _size(piece: str) -> int:
    """Return the number of characters; of the bytes of one character, only the first counts."""
    if is_byte(piece):
        return int(int(piece[3:5], 16) & 0xC0 != 0x80)
    return len(piece)


def _size_of_unknown(pieces: Sequence[str], length: float) -> float:
    """Return the characters of an unknown piece: the rest of the text, divided equally."""
    unknown = sum(piece == UNKNOWN for piece in pieces)
    spelt = sum(_size(piece) for piece in pieces if piece != UNKNOWN)
    return max(1.0, (length - spelt) / unknown) if unknown else 0.0


@dataclass(frozen=True)
class ShownWord:
    """A word, or punctuation next to a word."""

    before: str
    """The space before the word; ``before`` and ``text`` of all words joined are the
    translation."""
    text: str
    log_probability: float
    """The log-probability of the whole word, in nats."""
    first: int
    """The number of its first token."""
    count: int
    """The number of tokens of the word."""

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
    """Return the words of a translation ``text`` whose tokens are written ``pieces``.

    ``log_probabilities`` may have one more entry, for the end symbol. ``spaced`` is False for a
    language without spaces. If the tokens spell the text apart from spaces and some entities
    (after Moses' detokeniser), each word gets its own tokens; if they do not spell it (after a
    normalisation), words are separated by spaces and share the tokens in proportion.
    """
    if not pieces:
        return []
    words = _spelt(pieces, log_probabilities, spaced=spaced)
    if _join(words) == text:
        return words
    units = _units(text, pieces)
    if units is not None:
        sums = [sum(log_probabilities[unit.first : unit.end]) for unit in units]
        words = _spelt([unit.spelt for unit in units], sums, spaced=spaced)
        if _join(words) == text:
            return [_of_tokens(word, units) for word in words]
    return _share_out(text, log_probabilities[: len(pieces)])


def _join(words: Sequence[ShownWord]) -> str:
    return "".join(word.before + word.text for word in words)


def _spelt(
    pieces: Sequence[str], log_probabilities: Sequence[float], *, spaced: bool
) -> list[ShownWord]:
    """Return the words that ``pieces`` spell."""
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
    """Tokens that spell some characters together, with the space before them."""

    spelt: str
    first: int
    end: int


def _units(text: str, pieces: Sequence[str]) -> list[_Unit] | None:
    """Return the smallest groups of tokens that spell ``text``, where spaces may differ and
    entities are one character; None if more differs."""
    spelt, owners = bytearray(), list[int]()
    for number, piece in enumerate(pieces):
        data = _bytes_of(piece)
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
        visible = next(wanted, None)
        if visible is None or visible[0] != _ENTITIES.get(match[0], match[0]):
            return None
        character = text[read : visible.start()].replace(" ", SPACE) + visible[0]
        read = visible.end()
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
    """Return a word with the tokens of its units instead of the units."""
    first, last = units[word.first], units[word.first + word.count - 1]
    return replace(word, first=first.first, count=last.end - first.first)


def _share_out(text: str, log_probabilities: Sequence[float]) -> list[ShownWord]:
    """Return the words of a text whose tokens do not spell it, each with a share of the tokens.

    Shares are proportional to characters, so they are a guess. A word too short for a token
    joins the next.
    """
    tokens = len(log_probabilities)
    words: list[ShownWord] = []
    first = begin = 0
    ends = [match.end() for match in _WORD.finditer(text)]
    for place in [*ends[:-1], len(text)]:  # the last word has the space after it too
        end = tokens * place // len(text) if ends else 0
        if end > first:
            part = text[begin:place]
            body = part.lstrip()
            share = sum(log_probabilities[first:end])
            words.append(ShownWord(part[: len(part) - len(body)], body, share, first, end - first))
            first, begin = end, place
    return words or [ShownWord("", text, sum(log_probabilities), 0, tokens)]


def _peel(run: list[int], pieces: Sequence[str]) -> list[list[int]]:
    """Split tokens between two spaces into marks before the word, the word, and marks after."""
    begin, end = 0, len(run)
    while begin < end and _is_mark(pieces[run[begin]]):
        begin += 1
    while end > begin and _is_mark(pieces[run[end - 1]]):
        end -= 1
    return [part for part in (run[:begin], run[begin:end], run[end:]) if part]


def _is_mark(piece: str) -> bool:
    bare = piece.removeprefix(SPACE)
    return bool(bare) and all(unicodedata.category(c).startswith("P") for c in bare)


def _spell(pieces: Sequence[str]) -> str:
    """Return the text that tokens spell. Bytes of one character are decoded together; bytes that
    form no character are left out."""
    return b"".join(map(_bytes_of, pieces)).decode("utf-8", "ignore").replace("\n", " ")


def _bytes_of(piece: str) -> bytes:
    byte = BYTE.match(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace(SPACE, " ").encode()


def _with_text(words: list[ShownWord]) -> list[ShownWord]:
    """Join a lone space token to the word that follows it."""
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
