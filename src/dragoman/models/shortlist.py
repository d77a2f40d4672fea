"""Shortlists: the target tokens that are likely for a source, so that the output layer need not
score all tokens.

A sentence may use the best candidates of each of its tokens, its own tokens (names are copied), and
the tokens that are frequent everywhere. The candidates are learned only from the training pairs
(IBM model 1, ``alignment.py``).

A shortlist is a file in a run. It is derived from the run, and has a key, a hash that the caller
gives.

Shapes: S source vocabulary, C candidates of all source tokens together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import Field
from safetensors.numpy import save_file

from dragoman.alignment import learn_dictionary
from dragoman.base.atomic import replacing_file
from dragoman.base.errors import RunError
from dragoman.base.settings import Settings
from dragoman.base.tensor_file import open_tensors

Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Shortlist:
    """The target tokens that are candidates for each source token."""

    always: Integers
    """The target tokens that every source may use."""
    offsets: Integers
    """(S + 1,): the candidates of token s are ``candidates[offsets[s]:offsets[s + 1]]``."""
    candidates: Integers
    """(C,) the candidates of all source tokens, which are target tokens."""

    def tokens_for(self, source: npt.ArrayLike) -> Integers:
        """Return the target tokens that a source (length,) may use, sorted."""
        parts = [self.always]
        for token in np.unique(np.asarray(source)).tolist():
            parts.append(self.candidates[self.offsets[token] : self.offsets[token + 1]])
        return np.unique(np.concatenate(parts))

    def save(self, path: Path, key: str) -> None:
        """Write the shortlist to a file, completely or not at all. ``key`` identifies what it was
        derived from."""
        arrays = {"always": self.always, "offsets": self.offsets, "candidates": self.candidates}
        with replacing_file(path) as temporary:
            save_file(arrays, temporary, metadata={"key": key})

    @classmethod
    def load(
        cls, path: Path, key: str, source_vocabulary: int, target_vocabulary: int, eos: int
    ) -> Shortlist | None:
        """Read a shortlist; None if there is no file, or one with another ``key``.

        ``eos``: the end symbol of the target, without which no output would end.

        Errors: ``RunError`` for a damaged file: the native kernels trust its contents.
        """
        if not path.exists():
            return None
        try:
            with open_tensors(path, "I32") as file:
                if file.metadata.get("key") != key:
                    return None
                if set(file.shapes) != {"always", "offsets", "candidates"}:
                    raise RunError(f"{path} is damaged (it is not a shortlist)")
                shortlist = cls(*(file.read(name) for name in ("always", "offsets", "candidates")))
            shortlist._check(source_vocabulary, target_vocabulary, eos)
        except RunError as error:
            raise RunError(f"{error}. Delete {path} and learn it again") from error
        return shortlist

    def _check(self, source_vocabulary: int, target_vocabulary: int, eos: int) -> None:
        """Raise ``RunError`` unless ``learn`` could have written all of these numbers."""
        offsets = self.offsets
        if any(array.ndim != 1 for array in (self.always, offsets, self.candidates)):
            raise RunError("the shortlist is damaged (it is not a list)")
        if len(offsets) != source_vocabulary + 1:
            raise RunError(
                f"the shortlist is damaged (it is for {len(offsets) - 1:,} source tokens, not "
                f"{source_vocabulary:,})"
            )
        ends = offsets[0] == 0 and offsets[-1] == len(self.candidates)
        if not ends or (offsets[1:] < offsets[:-1]).any():
            raise RunError("the shortlist is damaged (its offsets are outside of it)")
        for ids in (self.always, self.candidates):
            if len(ids) and not 0 <= ids.min() <= ids.max() < target_vocabulary:
                raise RunError("the shortlist is damaged (it contains unknown tokens)")
        if eos not in self.always:
            raise RunError("the shortlist is damaged (it lacks the end symbol)")


class ShortlistSettings(Settings):
    """Settings of the size and learning of a shortlist."""

    always: int = Field(256, ge=1, le=1_000_000)
    """The number of most frequent target tokens that every sentence may use."""
    per_token: int = Field(64, ge=1, le=1_000_000)
    """The maximum number of target tokens for each source token."""
    least: float = Field(0.0003, ge=0, le=1)
    """Target tokens with a lower probability than this are left out."""
    rounds: int = Field(4, ge=1, le=1000)
    """The number of rounds of expectation maximisation."""
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
    """Learn a shortlist from tokenised sentence pairs without special symbols.

    ``always``: tokens that every source may use, whatever the pairs (unknown and end symbol).
    ``shared``: both sides have one vocabulary, so that source tokens may be copied.
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
