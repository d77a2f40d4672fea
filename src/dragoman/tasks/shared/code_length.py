"""How long texts are in tokens and in bytes, so that what a language model finds of them compares.

A model gives the tokens of a text a probability, and -log2 P is the length in bits of a code for
them. Over the bytes of the text it does not depend on the vocabulary, if the code gives the whole
text back. Two things are in the way: a vocabulary may normalise what it reads, and may not know all
characters. Both are counted here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from dragoman.data.store import Tokens
from dragoman.forms.subwords.sampling import SPACE
from dragoman.forms.subwords.text import Text
from dragoman.metrics.perplexity import perplexity

_BITS_OF_A_BYTE = 8.0
_BYTE = re.compile("<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class Length:
    """How long texts are, in all units that a model's scores are given by."""

    tokens: int = 0
    """Tokens, end symbols counted."""
    bytes: int = 0
    """UTF-8 bytes of the texts as the vocabulary knows them, and one for the end of each, as in a
    file with a text on each line."""
    given: int = 0
    """UTF-8 bytes of the texts as they are given: more than ``bytes`` where normalisation loses
    something."""
    unknown: int = 0
    """Bytes that stand behind unknown tokens. An unknown token does not say which characters it
    is, so in bits per byte each of them costs 8 bits more."""

    @classmethod
    def of(cls, vocabulary: Text, text: str, tokens: Sequence[int] | Tokens) -> Self:
        """The length of one text. ``tokens``: without special symbols."""
        known = vocabulary.known_as(text)
        length, unknown = _bytes(known), 0
        if vocabulary.unknown in tokens:
            rest = [int(token) for token in tokens if token != vocabulary.unknown]
            # The space that stands before a text among its tokens is none of its bytes.
            before = 0 if vocabulary.settings.lossless or not known else 1
            unknown = length + before - sum(map(_spelled, vocabulary.pieces(rest)))
        return cls(len(tokens) + 1, length + 1, _bytes(text) + 1, unknown)

    @classmethod
    def sum(cls, lengths: Iterable[Length]) -> Length:
        """The length of many texts together."""
        total = Length()
        for one in lengths:
            total = Length(
                total.tokens + one.tokens,
                total.bytes + one.bytes,
                total.given + one.given,
                total.unknown + one.unknown,
            )
        return total

    def scores(self, nll: float) -> dict[str, float]:
        """The scores of texts of this length. ``nll``: their -log P in nats."""
        bits = nll / math.log(2) + _BITS_OF_A_BYTE * self.unknown
        return {
            "perplexity": perplexity(nll / max(self.tokens, 1)),
            "bits_per_byte": bits / max(self.bytes, 1),
        }


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _spelled(piece: str) -> int:
    """Bytes that a known token writes."""
    return 1 if _BYTE.fullmatch(piece) else _bytes(piece.replace(SPACE, " "))
