"""Keys for random draws: the same draw on every machine, in every order, after every resume.

Each draw of training is owned by what it is for (the seed of the run, the update, the example),
never by how many draws came before it.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1


def key(*parts: int) -> int:
    """Mix integers into 63 bits that look random (SplitMix64, Steele et al. 2014).

    Any part that differs, and their order, changes all bits; (seed, update) is the key of an
    update's dropout.
    """
    state = 0x9E3779B97F4A7C15
    for part in parts:
        state = _mix((state ^ (part & _MASK)) + 0x9E3779B97F4A7C15)
    return state >> 1


def _mix(value: int) -> int:
    value &= _MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)
