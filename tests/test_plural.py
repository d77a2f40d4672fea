from __future__ import annotations

import pytest

from dragoman.plural import plural


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
