"""Inline markup, counted."""

from __future__ import annotations

import pytest

from dragoman.tasks.translation.evaluation import count_intact, marks


def test_what_counts_as_a_mark() -> None:
    text = (
        "See :func:`open`, :ref:`the titles <titles>`, :py:mod:`!cgi`, ``a *b* `c` ``, **strong "
        "words**, *emphasis*, `PyPI`_, `Python <https://python.org/>`__ and 2 * 3 * 4."
    )
    assert marks(text) == {
        (":func:", "open"): 1,
        (":ref:", "titles"): 1,
        (":py:mod:", "!cgi"): 1,
        ("literal", "a *b* `c` "): 1,
        ("strong", ""): 1,
        ("emphasis", ""): 1,
        ("reference", "PyPI"): 1,
        ("reference", "https://python.org/"): 1,
    }


@pytest.mark.parametrize(
    ("translation", "intact"),
    [
        ("**매우** 좋은 :func:`open`", 1),
        (":func:`open` 은 **매우 매우** 좋다", 1),  # another order, other words within marks
        ("매우 좋은 :func:`open`", 0),  # a mark is missing
        ("**매우** 좋은 :func:`close`", 0),  # what must stay was changed
        ("**매우** **좋은** :func:`open`", 0),  # one too many
        ("**매우 좋은 :func:`open`", 0),  # left open
    ],
)
def test_a_line_is_intact_with_all_of_its_marks_and_no_other(translation: str, intact: int) -> None:
    source, plain = "a **very** good :func:`open`", "no marks"
    found = count_intact([source, plain], [translation, "**x**"], [source, plain])
    assert (found.lines, found.intact, found.references) == (1, intact, 1)
    assert str(found) == (
        f"inline markup intact in {intact} of the 1 line that has any (in the references: 1)"
    )
