"""Links of training examples in their file: they come back, and a damaged file is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dragoman.base.errors import RunError
from dragoman.data.word_links import WordLinks


def test_links_come_back(tmp_path: Path) -> None:
    every = [frozenset({(1, 2), (0, 5)}), frozenset[tuple[int, int]](), frozenset({(7, 0)})]
    made = WordLinks.of(every)
    made.save(tmp_path / "links", "made of this")
    found = WordLinks.load(tmp_path / "links", "made of this", 3)
    assert found is not None and (len(found), found.linked) == (3, 2)
    assert [frozenset(zip(*map(list, found[n]), strict=True)) for n in range(3)] == every
    assert WordLinks.load(tmp_path / "links", "made of something else", 3) is None
    assert WordLinks.load(tmp_path / "nowhere", "made of this", 3) is None


@pytest.mark.parametrize(
    ("offsets", "source", "target"),
    [
        ([0, 2], [1, 2], [1, 2]),  # of another number of examples
        ([0, 1, 3], [1, 2], [1, 2]),
        ([0, 1, 1], [1, 2], [1, 2]),
        ([1, 1, 2], [1, 2], [1, 2]),
        ([0, 3, 2], [1, 2], [1, 2]),
        ([0, 1, 2], [1, -2], [1, 2]),
        ([0, 1, 2], [1, 2], [1]),
    ],
)
def test_links_that_lead_out_of_the_file_are_refused(
    tmp_path: Path, offsets: list[int], source: list[int], target: list[int]
) -> None:
    arrays = (np.array(numbers, np.int32) for numbers in (offsets, source, target))
    WordLinks(*arrays).save(tmp_path / "links", "key")
    with pytest.raises(RunError, match=r"links is damaged.*Delete it"):
        WordLinks.load(tmp_path / "links", "key", 2)
