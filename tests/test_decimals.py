"""Numbers with decimals, as a person reads them."""

from __future__ import annotations

import pytest

from dragoman.decimals import decimals


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [(-0.004, 2, "0.00"), (-0.0, 4, "0.0000"), (-0.006, 2, "-0.01"), (3.14159, 3, "3.142")],
)
def test_what_rounds_to_zero_has_no_sign(value: float, digits: int, words: str) -> None:
    assert decimals(value, digits) == words
