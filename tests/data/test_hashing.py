"""Keyed hashes: runs that are resumed years later draw what they drew, so the numbers are fixed."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from dragoman.data.hashing import STEP, hashes, key_of, mix, torch_seed

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(value: int) -> int:
    """SplitMix64 over Python's integers."""
    value = (value + GOLDEN) & WORD
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & WORD
    return value ^ (value >> 31)


def test_the_stream_is_the_published_one() -> None:
    """The first numbers of seed 1234567, as implementations in other languages are tested with."""
    found = mix(np.uint64(1234567) + np.arange(5, dtype=np.uint64) * np.uint64(STEP))
    assert found.tolist() == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
        16408922859458223821,
    ]  # fmt: skip


PARTS = [(0,), (1, 2), (2, 1), (-1, 3), (WORD, -1, 3), (42, 7, 2**63)]


@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_keys_are_what_they_were(parts: tuple[int, ...]) -> None:
    masked = [part & WORD for part in parts]
    assert key_of(*parts) == reduce(lambda state, part: mixed(state ^ part), masked, 0)
    assert (
        torch_seed(*parts) == reduce(lambda state, part: mixed(state ^ part), masked, GOLDEN) >> 1
    )


def test_hashes_are_what_they_were() -> None:
    assert hashes(np.array([0, 1, -1]), 5).tolist() == [mixed(5), mixed(4), mixed(WORD ^ 5)]
    assert [torch_seed(0), torch_seed(1, 2)] == [0x373C4F3550DCB2FA, 0x424509C81B882820]
