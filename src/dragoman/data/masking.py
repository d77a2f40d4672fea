"""Masking hides some tokens of a text, which the model must predict (Devlin et al., 2019, §3.1: the
masked language model of BERT, without its next-sentence task).

Of the n tokens of a text, share · n must be predicted, and at least one. Of those, 80 % are read as
``<mask>``, 10 % as a random token of the vocabulary, and 10 % unchanged, so that a model cannot
know which of the other tokens to trust. With ``whole_words`` all tokens of a word are chosen
together, because a part of a word would give the rest away; each of them then has its own draw.

Masks are dynamic: every draw is a pure function of a key, which training makes from seed, update
and example. So a text has new masks in each epoch, and the same ones however the work is divided.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from dragoman.base.errors import DataError
from dragoman.base.settings import Settings
from dragoman.data.hashing import hashes, key_of
from dragoman.data.store import Tokens
from dragoman.data.word_links import word_starts, words_of
from dragoman.forms.subwords.text import MASK, Text

Places = npt.NDArray[np.int64]

_CHOICE, _FATE, _TOKEN = 1, 2, 3
"""The numbers of the three streams of one key."""


class MaskingSettings(Settings):
    """For masked models: which tokens of a text must be predicted, and what the model reads instead
    of them."""

    share: float = Field(0.15, gt=0, le=1)
    """The share of tokens that must be predicted; at least one token per text (BERT: 15 %)."""
    hidden: float = Field(0.8, ge=0, le=1)
    """The share of these tokens that are replaced by ``<mask>`` (BERT: 80 %)."""
    replaced: float = Field(0.1, ge=0, le=1)
    """The share of these tokens that are replaced by a random token (BERT: 10 %). The rest are left
    unchanged."""
    whole_words: bool = False
    """Mask all tokens of a word together."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.hidden + self.replaced > 1:
            raise ValueError(
                f"hidden {self.hidden} and replaced {self.replaced} are shares of the same "
                "tokens. Together they must be at most 1"
            )
        return self


class Masked(NamedTuple):
    """A text in which some tokens are masked."""

    read: Tokens
    """(n,) the tokens, some of them hidden."""
    places: Places
    """(m,) the places that must be predicted, ascending."""


class Masking:
    """This class masks texts of one vocabulary."""

    def __init__(self, vocabulary: Text, settings: MaskingSettings) -> None:
        """Raise ``DataError`` for a vocabulary without ``<mask>``."""
        if vocabulary.mask is None:
            raise DataError(
                f"the vocabulary has no {MASK}, because it was learned for another task. Learn "
                "one with dragoman train --task masked"
            )
        self.settings = settings
        self._mask = vocabulary.mask
        self._ordinary = vocabulary.ordinary
        self._drawn = np.flatnonzero(vocabulary.ordinary & ~vocabulary.bytes).astype(np.int32)
        self._starts = word_starts(vocabulary)

    def __call__(self, tokens: Tokens, key: int) -> Masked:
        """Mask the bare tokens (n,) of a text. Only ordinary tokens are chosen."""
        places = self._choose(tokens, key_of(key, _CHOICE))
        settings, read = self.settings, tokens.copy()
        fates = _numbers(places, key_of(key, _FATE))
        hidden = fates < settings.hidden
        replaced = ~hidden & (fates < settings.hidden + settings.replaced)
        read[places[hidden]] = self._mask
        drawn = hashes(places[replaced], key_of(key, _TOKEN)) % np.uint64(max(1, len(self._drawn)))
        read[places[replaced]] = self._drawn[drawn.astype(np.int64)]
        return Masked(read, places)

    def _choose(self, tokens: Tokens, key: int) -> Places:
        """Return the places to predict: words or tokens are taken in an order drawn by ``key``, as
        long as they do not exceed the share."""
        known = np.flatnonzero(self._ordinary[tokens])
        wanted = max(1, round(self.settings.share * len(known)))
        if not self.settings.whole_words:
            return np.sort(known[np.argsort(hashes(known, key))[:wanted]])
        words = words_of(tokens, self._starts)[known]
        names, sizes = np.unique(words, return_counts=True)
        taken: list[int] = []
        for number in np.argsort(hashes(names, key)):
            # The first word is taken in any case, so that a text of one long word has something to
            # predict.
            if sizes[number] <= wanted or not taken:
                taken.append(int(names[number]))
                wanted -= int(sizes[number])
        return known[np.isin(words, taken)]


def _numbers(places: Places, key: int) -> npt.NDArray[np.float64]:
    """Return (m,) numbers in [0, 1), one for each place."""
    return (hashes(places, key) >> np.uint64(11)).astype(np.float64) / 2.0**53
