"""Keyed 64-bit hashes: random orders and draws that are pure functions of their key.

To shuffle, sort by the hashes. Unlike a generator's shuffle, whose stream may change with the
version of a library, this is the same everywhere and for ever, and any part of it can be worked
out alone.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

STEP = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: the step of SplitMix64."""
_WORD = 2**64 - 1

Words = TypeVar("Words", int, npt.NDArray[np.uint64])


def key_of(*parts: int) -> int:
    """Return one 64-bit key from several numbers, all of which matter, and so does their order."""
    key = 0
    for part in parts:
        key = mix(key ^ (part & _WORD))
    return key


def torch_seed(first: int, *parts: int) -> int:
    """Return 63 bits that look random, as a seed of torch: the same on every machine, in every
    order, and after every resume. The parts identify a draw of training: (seed, update) is the seed
    of an update's dropout. A change of any part, or of their order, changes all bits."""
    # The keys must differ from those of orders and samples, some of which have the same parts.
    return key_of(first ^ STEP, *parts) >> 1


def hashes(numbers: npt.NDArray[np.int64], key: int) -> npt.NDArray[np.uint64]:
    """Return (n,) hashes of the numbers; different numbers have different hashes."""
    return mix(numbers.astype(np.uint64) ^ np.uint64(key))


def mix(words: Words) -> Words:
    """SplitMix64 (Steele, Lea and Flood, 2014) of one number below 2^64, or of an array of them: a
    bijection that scatters every bit. Its stream of a seed is ``mix(seed + i * STEP)``, whose state
    after i steps needs no steps."""
    state: Any = words
    state = (state + STEP) & _WORD
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _WORD
    mixed: Words = state ^ (state >> 31)
    return mixed
