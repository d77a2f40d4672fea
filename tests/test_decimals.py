"""Numbers with decimals, as a person reads them."""

from __future__ import annotations

import pytest

from dragoman.decimals import decimals, enough


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [(-0.004, 2, "0.00"), (-0.0, 4, "0.0000"), (-0.006, 2, "-0.01"), (3.14159, 3, "3.142")],
)
def test_what_rounds_to_zero_has_no_sign(value: float, digits: int, words: str) -> None:
    assert decimals(value, digits) == words


@pytest.mark.parametrize(
    ("greatest", "least", "digits"),
    [(0.0, 3, 3), (12.5, 2, 2), (0.05, 2, 3), (0.0042, 3, 4), (0.000161, 2, 5), (1e-30, 3, 9)],
)
def test_what_is_small_is_not_shown_as_nothing(greatest: float, least: int, digits: int) -> None:
    assert enough(greatest, least) == digits
    if greatest > 1e-8:
        assert float(decimals(greatest, digits)) == pytest.approx(greatest, rel=0.05)
