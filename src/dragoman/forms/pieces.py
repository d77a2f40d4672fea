"""Subword pieces as a vocabulary writes them, and their places in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.forms.form import Form

SPACE = "▁"
"""U+2581, which SentencePiece writes for a space."""
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
