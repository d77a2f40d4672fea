"""Random segmentations for training, as a pure function of (text, key).

There are two ways to show a model a word cut differently each time it comes by: BPE-dropout
(``bpe_dropout.py``) and unigram sampling (``unigram_sampling.py``). This is what they share.

SentencePiece does both, but draws from one generator per thread, so what a sentence becomes
depends on what was encoded before it. Here the random numbers come from a hash of the key, so an
interrupted run, or one with more processes, sees the same segmentations. The distribution is
SentencePiece's own; a test compares the two.

Both walk over the *normalised* text (spaces written as U+2581) word by word, which is exact as
long as no piece reaches across a word boundary, and both remember words, which makes them fast.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

SPACE = "▁"
"""U+2581, how SentencePiece writes a space."""

CACHED_WORD = 22
"""Characters of a word that is remembered; those of longer ones hardly come again. In BPE-dropout a
word of n has at most 3(n - 1) decisions, so one mask of 64 bits is enough up to here."""
CACHED_NODES = 1 << 18
"""Segmentations remembered before the memory is cleared: about 80 MB."""


@dataclass(frozen=True)
class Pieces:
    """What a sampler needs to know of a trained vocabulary."""

    scores: dict[str, float]
    """The score of every piece that text can become (no control, unknown or byte pieces)."""
    ids: dict[str, int]
    """The id of every piece in ``scores``."""
    bytes: Sequence[int] | None
    """The ids of the 256 byte pieces; None without byte fallback."""
    unknown: int
    whole: Sequence[str] = ()
    """Symbols that are never cut."""

    def of(self, symbol: str) -> tuple[int, ...]:
        """The id of a symbol, or of its UTF-8 bytes, or of ``<unk>``."""
        known = self.ids.get(symbol)
        if known is not None:
            return (known,)
        if self.bytes is None:
            return (self.unknown,)
        return tuple(self.bytes[byte] for byte in symbol.encode("utf-8"))


class Sampler(ABC):
    """A keyed random segmentation."""

    @abstractmethod
    def segment(self, normalised: str, key: int) -> list[int]:
        """Token ids of a normalised text. The same arguments always give the same ids."""


class WordPieces:
    """Cuts normalised text where no piece can reach across: before U+2581, around whole symbols."""

    def __init__(self, pieces: Pieces) -> None:
        self._reach_across = any(SPACE in piece[1:] for piece in pieces.scores)
        self._whole = frozenset(pieces.whole)
        longest_first = sorted(self._whole, key=len, reverse=True)
        self._cut = (
            re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
            if longest_first
            else None
        )

    def of(self, normalised: str) -> list[str]:
        if self._cut is None:
            return self._plain(normalised)
        words: list[str] = []
        for part in self._cut.split(normalised):
            words.extend([part] if part in self._whole else self._plain(part))
        return words

    def _plain(self, text: str) -> list[str]:
        if self._reach_across:
            return [text] if text else []
        first, *others = text.split(SPACE)
        words = [SPACE + other for other in others]
        return [first, *words] if first else words


def random_bytes(key: int, count: int) -> bytes:
    """So many random bytes, a pure function of the key."""
    return hashlib.shake_128((key & (2**64 - 1)).to_bytes(8, "little")).digest(count)


def join_unknown(ids: list[int], pieces: Pieces) -> list[int]:
    """Neighbouring unknown symbols are one ``<unk>``, as in SentencePiece."""
    if pieces.bytes is not None or pieces.unknown not in ids:
        return ids
    unknown = pieces.unknown
    return [
        token
        for place, token in enumerate(ids)
        if token != unknown or place == 0 or ids[place - 1] != unknown
    ]
