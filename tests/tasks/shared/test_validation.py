"""Which examples of a dev set a validation takes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dragoman.tasks.classification.evaluation import ClassificationValidation


@pytest.mark.parametrize(("count", "wanted"), [(900, 500), (1014, 500), (7, 3), (3, 7), (5, 0)])
def test_they_are_spread_from_the_first_to_the_last(count: int, wanted: int) -> None:
    validation = object.__new__(ClassificationValidation)
    validation.pairs = [("a", "b")] * count
    places = validation.spread(wanted)
    assert len(set(places)) == len(places) == min(count, wanted)
    assert places == sorted(places)
    if wanted:
        assert (places[0], places[-1]) == (0, count - 1)
        steps = [b - a for a, b in pairwise(places)]
        assert max(steps) - min(steps) <= 1
