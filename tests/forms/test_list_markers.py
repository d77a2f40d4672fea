"""Bullets and numbers of a list are no words: they stay as they are, before what is translated."""

from __future__ import annotations

import pytest

from dragoman.forms.segmentation import list_marker
from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import TextForm

LINES = ["The cat sleeps.", "Who sees the dog?", "1 - 2. a) b) (c) • *"]
TEXT = learn_vocabulary(LINES, TextSettings(vocabulary=300))


@pytest.mark.parametrize(
    ("line", "language", "marker"),
    [
        ("- The cat", "en", "- "),
        ("•  The cat", "en", "•  "),
        ("1. Who", "en", "1. "),
        ("12) Who", "en", "12) "),
        ("(3) Who", "de", "(3) "),
        ("1.2. Who", "en", "1.2. "),
        ("a) Who", "en", "a) "),
        ("3. Oktober ist ein Feiertag.", "de", ""),
        ("A. Smith came.", "en", ""),
        ("-5 degrees", "en", ""),
        ("1.5 litres", "en", ""),
        ("2026 was warm.", "en", ""),
        ("- ", "en", ""),
        ("", "en", ""),
    ],
)
def test_markers(line: str, language: str, marker: str) -> None:
    assert list_marker(line, language) == marker


def test_a_list_is_cut_into_its_items_and_put_together_again() -> None:
    text = "- The cat sleeps.\n- Who sees the dog? The cat.\n\n1. The dog\n  2) The cat - the dog\n"
    form = TextForm(TEXT, "en")
    (passage,) = form.cut([text], form, longest=100, whole=False)
    pieces = [piece.text for piece in passage.pieces]
    assert pieces == [
        "The cat sleeps.",
        "Who sees the dog?",
        "The cat.",
        "The dog",
        "The cat - the dog",
    ]
    assert passage.join(pieces) == text
    assert passage.join([piece.upper() for piece in pieces]) == text.upper()
    (whole,) = form.cut(["- The cat"], form, longest=100, whole=True)
    assert whole.pieces[0].text == "- The cat", "what is not cut is read as it is"


def test_within_a_line_a_dash_or_a_number_is_no_marker() -> None:
    text = "The cat sleeps. 1) The dog sees.\n- The cat"
    form = TextForm(TEXT, "en")
    (passage,) = form.cut([text], form, longest=100, whole=False)
    assert [piece.text for piece in passage.pieces] == [
        "The cat sleeps.",
        "1) The dog sees.",
        "The cat",
    ]
