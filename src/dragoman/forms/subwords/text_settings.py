"""The settings for cutting text into tokens."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings import Settings
from dragoman.forms.subwords.sampling import SPACE

MOST_TOKENS = 300_000
"""The most tokens of a vocabulary. SentencePiece takes up to 270 bytes of memory for each."""


LEAST_COVERAGE = 0.98
"""The least ``character_coverage`` that SentencePiece accepts."""


class TextSettings(Settings):
    """The settings for splitting text into tokens."""

    kind: Literal["bpe", "unigram", "char", "word"] = "bpe"
    """The kind of tokens: byte-pair encoding, unigram language model, characters, or words."""
    vocabulary: int = Field(8000, ge=8, le=MOST_TOKENS)
    """The size of the vocabulary, including special and byte tokens. For char and word: its upper
    limit."""
    shared: bool = True
    """Use one vocabulary for source and target (section 5.1 of the paper) instead of two."""
    byte_fallback: bool = True
    """Encode characters outside the vocabulary as UTF-8 bytes, so that no character is unknown."""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "nfc", "identity"] = (
        "nmt_nfkc"
    )
    """Unicode normalisation. cf folds case; nmt also normalises spaces and removes control
    characters."""
    lossless: bool = False
    """Make tokenisation exactly reversible: no normalisation, and all spaces are kept."""
    character_coverage: float = Field(0.9995, ge=LEAST_COVERAGE, le=1)
    """The share of the training text that must be covered by characters with their own token. The
    remaining characters are treated as rare."""
    user_symbols: tuple[str, ...] = ()
    """Strings that are always a single token, such as markup or language tags."""
    sampling: float = Field(0.0, ge=0, lt=1)
    """For training only. bpe: the probability of dropping a merge (usually 0.1); unigram: the
    sampling exponent α (usually 0.2). 0: off."""
    sample_sentences: int = Field(1_000_000, ge=1, le=1_000_000_000)
    """The maximum number of sentences, chosen at random, from which the vocabulary is learned."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.lossless and (not self.byte_fallback or self.kind == "word"):
            raise ValueError("lossless needs byte_fallback = true and a kind other than word")
        if self.sampling and self.kind not in ("bpe", "unigram"):
            raise ValueError(f"sampling works only with kind bpe or unigram, not {self.kind}")
        for symbol in self.user_symbols:
            if not symbol or any(c.isspace() or c == SPACE for c in symbol):
                raise ValueError(f"user symbol {symbol!r} is empty or holds a space")
        return self
