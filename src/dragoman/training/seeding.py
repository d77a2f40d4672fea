"""Keys for random draws: the same draw on every machine, in every order, after every resume.

Each draw of training is owned by what it is for (the seed of the run, the update, the example),
never by how many draws came before it.
"""

from __future__ import annotations

from dragoman.data.hashing import STEP, keyed


def key(first: int, *parts: int) -> int:
    """63 bits that look random, as torch takes seeds; (seed, update) is the key of an update's
    dropout. Any part that differs, and their order, changes all bits."""
    # Not the keys of orders and samples, of which some have the same parts.
    return keyed(first ^ STEP, *parts) >> 1
