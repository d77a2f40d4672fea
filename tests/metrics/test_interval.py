"""Student's interval over a few runs."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.metrics.interval import estimate


@pytest.mark.parametrize("count", [2, 3, 5, 12, 40])
def test_it_holds_the_true_mean_as_often_as_it_says(count: int) -> None:
    drawn = np.random.default_rng(count).normal(5.0, 2.0, size=(1500, count))
    held = 0
    for values in drawn.tolist():
        found = estimate(values)
        assert found.half is not None
        held += abs(found.mean - 5.0) <= found.half
    assert 0.93 < held / len(drawn) < 0.97


def test_one_value_has_no_interval() -> None:
    one = estimate([3.0])
    assert (one.mean, one.half, str(one)) == (3.0, None, "3.00") and not one.differs_from_zero
    assert estimate([1.0, 1.1, 0.9]).differs_from_zero
    assert not estimate([1.0, -1.1, 0.9]).differs_from_zero
    assert str(estimate([1.0, 2.0, 3.0])) == "2.00 ± 2.48"
