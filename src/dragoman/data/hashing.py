"""Keyed 64-bit hashes: random orders that are pure functions of their key.

To shuffle, sort by the hashes. Unlike a generator's shuffle, whose stream may change with the
version of a library, this is the same everywhere and for ever, and any part of it can be worked
out alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

STEP = np.uint64(0x9E3779B97F4A7C15)


def keyed(*parts: int) -> int:
    """One 64-bit key from several numbers, of which each matters, and their order."""
    key = np.zeros(1, np.uint64)
    for part in parts:
        key = mix(key ^ np.array([part & (2**64 - 1)], np.uint64))
    return int(key[0])


def hashes(numbers: npt.NDArray[np.int64], key: int) -> npt.NDArray[np.uint64]:
    """(n,) a hash of each number; different numbers have different hashes."""
    return mix(numbers.astype(np.uint64) ^ np.uint64(key))


def mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea and Flood, 2014): a bijection that scatters every bit. Its stream of
    a seed is ``mix(seed + i * STEP)``, whose state after i steps needs no steps."""
    values = values + STEP
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
