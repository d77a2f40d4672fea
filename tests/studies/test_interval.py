"""Student's interval over a few runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dragoman.studies.ablation import estimate, quantile


@pytest.mark.parametrize("count", [2, 3, 5, 12, 40])
def test_it_holds_the_true_mean_as_often_as_it_says(count: int) -> None:
    drawn = np.random.default_rng(count).normal(5.0, 2.0, size=(1500, count))
    held = 0
    for values in drawn.tolist():
        found = estimate(values)
        assert found.half is not None
        held += abs(found.mean - 5.0) <= found.half
    assert 0.93 < held / len(drawn) < 0.97


@pytest.mark.parametrize("freedom", [*range(1, 34), 60, 100, 333])
def test_a_quantile_has_95_per_cent_between(freedom: int) -> None:
    """The density, integrated from minus to plus t."""
    t = quantile(freedom)
    at = np.linspace(-t, t, 20_001)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    density = np.full_like(at, math.exp(log_scale) / math.sqrt(freedom * math.pi))
    density *= (1 + at**2 / freedom) ** (-(freedom + 1) / 2)
    within = float((density[1:] + density[:-1]).sum() / 2 * (at[1] - at[0]))
    assert within == pytest.approx(0.95, abs=1e-6)


def test_quantiles_are_those_of_the_incomplete_beta_function() -> None:
    """Solved by mpmath 1.3 with 30 digits: 1 - I(ν / (ν + t²); ν / 2, 1 / 2) = 0.95."""
    published = {
        1: 12.706204736175, 2: 4.3026527297495, 3: 3.1824463052837, 4: 2.7764451051978,
        5: 2.5705818356363, 10: 2.2281388519863, 30: 2.0422724563012, 31: 2.0395134463964,
        32: 2.0369333434601, 60: 2.0002978220143, 120: 1.9799304050824, 999: 1.9623414611334,
    }  # fmt: skip
    assert {freedom: quantile(freedom) for freedom in published} == pytest.approx(
        published, rel=1e-11
    )
    values = [float(number) for number in range(32)]
    half = estimate(values).half
    assert half == pytest.approx(published[31] * np.std(values, ddof=1) / math.sqrt(32))


def test_one_value_has_no_interval() -> None:
    one = estimate([3.0])
    assert (one.mean, one.half) == (3.0, None) and not one.differs_from_zero
    assert estimate([1.0, 1.1, 0.9]).differs_from_zero
    assert not estimate([1.0, -1.1, 0.9]).differs_from_zero
    three = estimate([1.0, 2.0, 3.0])
    assert (three.mean, three.half) == (2.0, pytest.approx(2.4841, abs=1e-4))
