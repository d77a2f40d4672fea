"""How text is cut into tokens, and what is done to it before SentencePiece sees it."""

from __future__ import annotations

import unicodedata
from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.forms.sampling import SPACE
from dragoman.reading import readable
from dragoman.settings import Settings

MOST_TOKENS = 300_000
"""Of a vocabulary. SentencePiece takes up to 270 bytes of memory for each, however short."""


LEAST_COVERAGE = 0.98
"""The least of ``character_coverage`` that SentencePiece takes."""


class TextSettings(Settings):
    """How text is cut into tokens."""

    kind: Literal["bpe", "unigram", "char", "word"] = "bpe"
    """Byte-pair encoding, unigram language model, characters, or words."""
    vocabulary: int = Field(8000, ge=8, le=MOST_TOKENS)
    """Tokens in the vocabulary, special and byte tokens included; an upper limit for char, word."""
    shared: bool = True
    """One vocabulary for source and target (section 5.1 of the paper) instead of one for each."""
    byte_fallback: bool = True
    """Write characters outside the vocabulary as their UTF-8 bytes, so that none is unknown."""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "nfc", "identity"] = (
        "nmt_nfkc"
    )
    """Unicode normalisation: cf folds case; nmt also tidies spaces and control characters."""
    lossless: bool = False
    """Every valid string comes back exactly: no normalisation, all spaces kept."""
    character_coverage: float = Field(0.9995, ge=LEAST_COVERAGE, le=1)
    """Share of the running text whose characters get a token of their own; the rest are rare."""
    user_symbols: tuple[str, ...] = ()
    """Strings that are always one token, such as markup or language tags."""
    sampling: float = Field(0.0, ge=0, lt=1)
    """Training only. bpe: probability to drop a merge (0.1 is usual); unigram: the exponent α of
    sampling (0.2 is usual). 0 switches it off."""
    sample_sentences: int = Field(1_000_000, ge=1, le=1_000_000_000)
    """The most sentences, drawn at random, to read for learning the vocabulary."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.lossless and (not self.byte_fallback or self.kind == "word"):
            raise ValueError("lossless needs byte_fallback = true and a kind other than word")
        if self.sampling and self.kind not in ("bpe", "unigram"):
            raise ValueError(f"sampling is for kind bpe or unigram; kind {self.kind} has one way")
        for symbol in self.user_symbols:
            if not symbol or any(c.isspace() or c == SPACE for c in symbol):
                raise ValueError(f"user symbol {symbol!r} is empty or holds a space")
        return self


def prepare(text: str, settings: TextSettings) -> str:
    """What SentencePiece cannot do itself: NFC, and bytes that were not valid UTF-8."""
    if settings.normalization == "nfc" and not settings.lossless:
        text = unicodedata.normalize("NFC", text)
    return readable(text)
