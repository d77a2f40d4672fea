"""A shortlist finds the translations of words, and is read again only for what it was made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dragoman.base.errors import RunError
from dragoman.models.shortlist import Integers, Shortlist, ShortlistSettings, learn


def pairs_of(count: int, seed: int = 0) -> list[tuple[Integers, Integers]]:
    """Source token s is translated by s + 100, in any order; token 5 follows every sentence."""
    generator = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        source = generator.integers(10, 60, generator.integers(2, 9)).astype(np.int32)
        target = np.concatenate([generator.permutation(source + 100), [5]]).astype(np.int32)
        pairs.append((source, target))
    return pairs


def test_it_learns_a_dictionary() -> None:
    settings = ShortlistSettings(always=1, per_token=1)
    shortlist = learn(pairs_of(2000), 100, 200, settings, shared=False)
    assert shortlist.always.tolist() == [0, 2, 5]
    for token in range(10, 60):
        assert shortlist.tokens_for([token, token]).tolist() == [0, 2, 5, token + 100]
    assert shortlist.tokens_for([3]).tolist() == [0, 2, 5]  # never seen


def test_names_are_copied_where_the_vocabulary_is_shared() -> None:
    shortlist = learn(pairs_of(50), 200, 200, ShortlistSettings(always=1, per_token=3))
    assert 77 in shortlist.tokens_for([77])
    assert len(shortlist.offsets) == 201 and shortlist.offsets[-1] == len(shortlist.candidates)


def test_a_table_that_is_no_list_is_refused(tmp_path: Path) -> None:
    sound = learn(pairs_of(50), 100, 200, ShortlistSettings(always=1, per_token=3))
    path = tmp_path / "shortlist.safetensors"
    for name in ("always", "offsets", "candidates"):
        array = getattr(sound, name)
        replace(sound, **{name: array[:, None]}).save(path, "key")
        with pytest.raises(RunError, match=r"it is not a list.*[Ll]earn it again"):
            Shortlist.load(path, "key", 100, 200, 2)
    sound.save(path, "key")
    assert Shortlist.load(path, "key", 100, 200, 2) is not None


def test_limits() -> None:
    pairs = pairs_of(500)
    none = learn([], 100, 200, shared=False)
    assert none.always.tolist() == [0, 2] and len(none.candidates) == 0
    few = learn(pairs, 100, 200, ShortlistSettings(cells=100, always=1), shared=False)
    assert 0 < len(few.candidates) < 100
    sure = learn(pairs, 100, 200, ShortlistSettings(least=0.9, always=1), shared=False)
    counts = np.diff(sure.offsets)
    assert counts.max() <= 1


def test_it_is_kept_with_what_it_was_made_of(tmp_path: Path) -> None:
    shortlist = learn(pairs_of(50), 100, 200, shared=False)
    path = tmp_path / "shortlist.safetensors"
    assert Shortlist.load(path, "a", 100, 200, 2) is None
    shortlist.save(path, "a")
    found = Shortlist.load(path, "a", 100, 200, 2)
    assert found is not None
    for name in ("always", "offsets", "candidates"):
        assert np.array_equal(getattr(found, name), getattr(shortlist, name))
    assert Shortlist.load(path, "b", 100, 200, 2) is None
