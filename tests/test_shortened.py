"""Long texts in messages."""

from __future__ import annotations

import pytest

from dragoman.shortened import shortened


@pytest.mark.parametrize(
    ("text", "told"), [("", ""), ("abcd", "abcd"), ("abcde", "abc…"), ("a" * 100, "aaa…")]
)
def test_a_text_has_at_most_so_many_characters(text: str, told: str) -> None:
    assert shortened(text, 4) == told
