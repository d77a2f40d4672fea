"""Learning a shortlist from the training pairs alone (IBM model 1, ``alignment/dictionary.py``)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pydantic import Field

from dragoman.alignment.dictionary import learn_dictionary
from dragoman.models.shortlist import Integers, Shortlist
from dragoman.settings import Settings


class ShortlistSettings(Settings):
    """How long a shortlist is."""

    always: int = Field(256, ge=1, le=1_000_000)
    """The number of most frequent target tokens that every sentence may use."""
    per_token: int = Field(64, ge=1, le=1_000_000)
    """The maximum number of target tokens for each source token."""
    least: float = Field(0.0003, ge=0, le=1)
    """Target tokens with a lower probability than this are left out."""
    rounds: int = Field(4, ge=1, le=1000)
    """Rounds of expectation maximisation."""
    cells: int = Field(12_000_000, ge=1, le=1_000_000_000)
    """Pairs of a source and a target token to learn from; sentence pairs beyond are left out."""


def learn(
    pairs: Iterable[tuple[Integers, Integers]],
    source_vocabulary: int,
    target_vocabulary: int,
    settings: ShortlistSettings | None = None,
    *,
    always: Iterable[int] = (0, 2),
    shared: bool = True,
) -> Shortlist:
    """A shortlist from tokenised sentence pairs, without special symbols.

    ``always``: tokens to be kept whatever the pairs say (unknown and end symbol). ``shared``: both
    sides have one vocabulary, so that a source token may be copied.
    """
    chosen = settings or ShortlistSettings()
    dictionary = learn_dictionary(
        pairs, source_vocabulary, target_vocabulary, rounds=chosen.rounds, most=chosen.cells
    )
    cells, probability, counts = dictionary.cells, dictionary.probability, dictionary.counts
    source_of, target_of = cells // target_vocabulary, cells % target_vocabulary
    frequent = np.argsort(-counts, kind="stable")[: chosen.always]
    kept = np.union1d(frequent[counts[frequent] > 0], np.fromiter(always, np.int64))
    order = np.lexsort((-probability, source_of))
    first = np.searchsorted(source_of[order], np.arange(source_vocabulary))
    rank = np.empty(len(cells), np.int64)
    rank[order] = np.arange(len(cells)) - first[source_of[order]]
    good = (rank < chosen.per_token) & (probability >= chosen.least) & ~np.isin(target_of, kept)
    sources, targets = source_of[good], target_of[good]
    if shared:
        every = np.arange(min(source_vocabulary, target_vocabulary))
        sources, targets = np.concatenate([sources, every]), np.concatenate([targets, every])
    both = np.unique(sources * target_vocabulary + targets)
    sources, targets = both // target_vocabulary, both % target_vocabulary
    offsets = np.searchsorted(sources, np.arange(source_vocabulary + 1))
    return Shortlist(kept.astype(np.int32), offsets.astype(np.int32), targets.astype(np.int32))
