"""Where subword pieces stand in their text."""

from __future__ import annotations

import pytest

from dragoman.forms.shown_words import UNKNOWN, is_byte, pieces_in
from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.forms.text_form import TextForm

LINES = ["the old cat sees a dog", "a dog sees the old cat", "who sees the naive dogs?"] * 3
PLAIN = TextForm(learn_vocabulary(LINES, TextSettings(vocabulary=40, byte_fallback=False)), "en")
BYTES = TextForm(learn_vocabulary(LINES, TextSettings(vocabulary=300)), "en")


def spelt(form: TextForm, text: str) -> list[tuple[str, str]]:
    """Each piece, and what stands in its place."""
    pieces, spans = pieces_in(form, text)
    assert len(pieces) == len(spans)
    return [
        (p, text[round(b) : round(e)]) for p, (b, e) in zip(pieces, spans.tolist(), strict=True)
    ]


@pytest.mark.parametrize("text", ["the old  cat", " a dog\tsees ", "who", ""])
def test_pieces_that_spell_the_text_stand_where_they_spell_it(text: str) -> None:
    for piece, found in spelt(PLAIN, text):
        assert found == piece.removeprefix("▁")


def test_what_is_unknown_takes_its_own_place_and_no_other() -> None:
    found = spelt(PLAIN, "the 🐱🐱🐱 cat sees 고양이가 dogs")
    assert [place for piece, place in found if piece == UNKNOWN] == ["🐱🐱🐱", "고양이가"]
    assert "".join(place for piece, place in found if piece != UNKNOWN) == "thecatseesdogs"


def test_what_is_unknown_inside_a_word_ends_where_the_next_piece_begins() -> None:
    found = spelt(PLAIN, "the <<q>cat</q> sees")
    assert [place for piece, place in found if piece == UNKNOWN] == ["<<q>", "</q>"]
    assert "".join(place for piece, place in found if piece != UNKNOWN) == "thecatsees"


def test_bytes_of_one_character_stand_together() -> None:
    found = spelt(BYTES, "the 고 cat")
    assert "".join(place for piece, place in found if is_byte(piece)) == "고"


def test_a_word_that_is_normalised_moves_no_other() -> None:
    found = spelt(BYTES, "the ﬃ½ cat")
    assert [place for piece, place in found if place in ("the", "cat")] == ["the", "cat"]
