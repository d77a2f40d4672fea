"""Numbers and texts, as a person reads them."""

from __future__ import annotations

import pytest

from dragoman.base.wording import decimals, enough, percent, plural, shorten


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 texts"), (1, "1 text"), (2, "2 texts"), (1234, "1,234 texts")]
)
def test_one_is_told_as_one(number: int, told: str) -> None:
    assert plural(number, "text") == told
    forms = plural(number, "text has", "texts have")
    assert forms == told + (" has" if number == 1 else " have")


@pytest.mark.parametrize(
    ("minutes", "told"),
    [(1.0, "1 minute"), (1, "1 minute"), (0.5, "0.5 minutes"), (1440.0, "1,440 minutes")],
)
def test_times_are_told_as_counts_are(minutes: float, told: str) -> None:
    assert plural(minutes, "minute") == told


@pytest.mark.parametrize(
    ("text", "told"), [("", ""), ("abcd", "abcd"), ("abcde", "abc…"), ("a" * 100, "aaa…")]
)
def test_a_text_has_at_most_so_many_characters(text: str, told: str) -> None:
    assert shorten(text, 4) == told


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


@pytest.mark.parametrize(
    ("share", "digits", "english", "korean"),
    [
        (0.54, 0, "54\u00a0%", "54%"),
        (0.004, 0, "<\u00a01\u00a0%", "<\u00a01%"),
        (0.9996, 0, ">\u00a099\u00a0%", ">\u00a099%"),
        (0.9996, 1, ">\u00a099.9\u00a0%", ">\u00a099.9%"),
        (0.157, 1, "15.7\u00a0%", "15.7%"),
        (0.0, 0, "0\u00a0%", "0%"),
        (1.0, 1, "100.0\u00a0%", "100.0%"),
    ],
)
def test_percent_is_written_as_each_language_does(
    share: float, digits: int, english: str, korean: str
) -> None:
    assert percent(share, digits) == english
    assert percent(share, digits, korean=True) == korean
