"""What follows upon itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tasks.translation.proofreading.proofreader import repetitions

WORDS = st.lists(st.sampled_from(["Katze", "Hund", "die", "ein", "läuft"]), max_size=12)


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ("Die Katze Katze trägt.", ["Katze Katze"]),
        ("Katze katze", ["Katze katze"]),
        ("Der Mann auf dem auf dem Pferd", ["auf dem auf dem"]),
        ("das das das Boot", ["das das das"]),
        ("고양이 고양이", ["고양이 고양이"]),
        # What human translations do as well.
        ("Menschen, die die Straße überqueren", []),
        ("Er hält, hält den Arm", []),
        ("Der junge Junge", []),
        ("A man and a man", []),
        ("", []),
    ],
)
def test_repetitions(text: str, repeated: list[str]) -> None:
    assert [text[begin:end] for begin, end in repetitions(text)] == repeated


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ("我们我们我们去", ["我们我们我们"]),
        ("人人都爱", []),
        ("看一看一看", []),
        ("我喜欢苹果我喜欢苹果", ["我喜欢苹果我喜欢苹果"]),
    ],
)
def test_without_spaces_characters_are_looked_at(text: str, repeated: list[str]) -> None:
    assert [text[begin:end] for begin, end in repetitions(text, spaced=False)] == repeated


@given(
    WORDS,
    st.lists(st.sampled_from(["rot", "grün", "blau"]), min_size=2, max_size=4, unique=True),
    WORDS,
)
def test_a_group_that_is_written_twice_is_found_wherever_it_stands(
    before: list[str], group: list[str], behind: list[str]
) -> None:
    text = " ".join([*before, *group, *group, *behind])
    twice = " ".join(group * 2)
    assert any(twice in text[begin:end] for begin, end in repetitions(text))
