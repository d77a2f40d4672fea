"""Student's interval over a few runs."""

from __future__ import annotations

import math

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


@pytest.mark.parametrize("count", range(2, 33))
def test_half_its_width_is_a_quantile_of_student_s_distribution(count: int) -> None:
    """The density, integrated from minus to plus t: 95 % lie between."""
    freedom, values = count - 1, [float(number) for number in range(count)]
    half = estimate(values).half
    assert half is not None
    t = half / (np.std(values, ddof=1) / math.sqrt(count))
    at = np.linspace(-t, t, 20_001)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    density = np.full_like(at, math.exp(log_scale) / math.sqrt(freedom * math.pi))
    density *= (1 + at**2 / freedom) ** (-(freedom + 1) / 2)
    within = float((density[1:] + density[:-1]).sum() / 2 * (at[1] - at[0]))
    # Beyond 30 degrees of freedom the normal distribution serves.
    assert within == pytest.approx(0.95, abs=1e-4 if freedom <= 30 else 1e-2)


def test_one_value_has_no_interval() -> None:
    one = estimate([3.0])
    assert (one.mean, one.half, str(one)) == (3.0, None, "3.00") and not one.differs_from_zero
    assert estimate([1.0, 1.1, 0.9]).differs_from_zero
    assert not estimate([1.0, -1.1, 0.9]).differs_from_zero
    assert str(estimate([1.0, 2.0, 3.0])) == "2.00 ± 2.48"
