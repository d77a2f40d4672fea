"""Which token translates which: IBM model 1 (Brown et al. 1993, section 4.4).

p(t | s), how often source token s is translated by target token t, is learned by expectation
maximisation from sentence pairs alone; where in its sentence a token stands plays no part.

Shapes: S source vocabulary, T target vocabulary, N (s, t) that occur together in any pair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dictionary:
    """p(t | s) for every s and t that occur together."""

    cells: npt.NDArray[np.int64]
    """(N,) s x T + t, sorted."""
    probability: Floats
    """(N,) p(t | s) of each cell."""
    expected: Floats
    """(N,) how many links between s and t are expected in the pairs it was learned from."""
    counts: npt.NDArray[np.int64]
    """(T,) how often each target token occurs."""


def learn_dictionary(
    pairs: Iterable[tuple[Integers, Integers]],
    source_vocabulary: int,
    target_vocabulary: int,
    *,
    rounds: int,
    most: int,
) -> Dictionary:
    """From tokenised sentence pairs, without special symbols.

    ``rounds`` of expectation maximisation; ``most``: pairs of a source and a target token to learn
    from, sentence pairs beyond are left out.
    """
    keys, places, counts = _links(pairs, target_vocabulary, most)
    cells, which = np.unique(keys, return_inverse=True)  # the (s, t) that occur together
    source_of = cells // target_vocabulary
    probability: Floats = np.ones(len(cells))
    expected: Floats = np.zeros(len(cells))
    for _ in range(rounds):
        # E: each target token is shared out among the source tokens of its sentence; M: p(t | s).
        share = probability[which]
        share /= np.bincount(places, share)[places]
        expected = np.bincount(which, share, len(cells)).astype(np.float64)
        probability = expected / np.bincount(source_of, expected, source_vocabulary)[source_of]
    return Dictionary(cells, probability, expected, counts)


def _links(
    pairs: Iterable[tuple[Integers, Integers]], target_vocabulary: int, most: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Every (source, target) token pair of every sentence pair, as s x T + t; the target position
    that each belongs to; how often each target token occurs."""
    keys, places = [], []
    counts = np.zeros(target_vocabulary, np.int64)
    position = total = 0
    for source, target in pairs:
        if total + len(source) * len(target) > most:
            break
        total += len(source) * len(target)
        grid = source.astype(np.int64)[:, None] * target_vocabulary + target.astype(np.int64)
        keys.append(grid.ravel())
        places.append(np.tile(np.arange(position, position + len(target)), len(source)))
        position += len(target)
        counts += np.bincount(target, minlength=target_vocabulary)
    empty = [np.zeros(0, np.int64)]
    return np.concatenate(keys or empty), np.concatenate(places or empty), counts
