"""Labels and words: nothing invisible gets through, and no attention is lost on the way."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.pictures.labels import escape, labels, visible
from dragoman.pictures.records import AttentionRecord, by_word, merged_to_words, words

anything = st.text(st.characters(codec=None, exclude_categories=()))


@given(anything)
def test_escaped_text_is_legal_xml_and_keeps_printable_text(text: str) -> None:
    element = ElementTree.fromstring(f'<a b="{escape(text)}">{escape(text)}</a>'.encode())
    assert (element.text or "") == visible(text) == element.get("b")
    assert len(visible(text)) == len(text)
    if text.isprintable():
        assert visible(text) == text


def test_visible_shows_control_characters_and_disarms_direction() -> None:
    assert visible("a\x00b\x1b[31m\n\x7f") == "a␀b␛[31m␊␡"
    assert visible("\u202eabc\ud800\x85") == "\ufffdabc\ufffd\ufffd"
    assert visible("👩‍👩‍👧 ñ 한글 \u00a0") == "👩‍👩‍👧 ñ 한글 \u00a0"


def test_pieces_are_shown_with_their_joints() -> None:
    assert labels(["▁Das", "▁Tier", "e", "▁", ".", "</s>"]) == (
        "Das", "Tier", "…e", "␣", ".", "</s>",
    )  # fmt: skip
    assert labels(["a", "b", "</s>"]) == ("a", "b", "</s>")  # a model that marks no spaces
    assert labels(("▁a", "-", "b")) == ("a", "-", "…b")


def test_pieces_join_into_words() -> None:
    pieces = ["▁über", "quer", "te", "▁", "맵", "<unk>", "▁die", "<0xF0>", "</s>"]
    assert words(pieces) == (
        ("überquerte", "맵", "<unk>", "die<0xF0>", "</s>"),
        (0, 0, 0, 1, 1, 2, 3, 3, 4),
    )
    assert words([]) == ((), ())


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.lists(st.booleans(), max_size=9))
def test_attention_by_word_keeps_rows_that_sum_to_one(rows: list[bool], cols: list[bool]) -> None:
    cols = [True, *cols]
    word_of_row, word_of_column = np.cumsum(rows) - rows[0], np.cumsum(cols) - 1
    weights = np.random.default_rng(len(rows) * 10 + len(cols)).random((2, len(rows), len(cols)))
    weights /= weights.sum(-1, keepdims=True)
    merged = by_word(weights, word_of_row.tolist(), word_of_column.tolist())
    assert merged.shape == (2, word_of_row[-1] + 1, word_of_column[-1] + 1)
    np.testing.assert_allclose(merged.sum(-1), 1)
    # The last word's share of the last word, spelled out.
    plain = weights[:, word_of_row == word_of_row[-1]][:, :, word_of_column == word_of_column[-1]]
    np.testing.assert_allclose(merged[:, -1, -1], plain.sum(-1).mean(-1))


def test_a_record_in_words() -> None:
    source, target = ["▁an", "imal", "</s>"], ["▁Ti", "er", "▁ja", "</s>"]
    rng = np.random.default_rng(0)

    def weights(rows: int, columns: int) -> np.ndarray:
        drawn = rng.random((2, 3, rows, columns))
        return drawn / drawn.sum(-1, keepdims=True)

    record = AttentionRecord(source, target, weights(3, 3), weights(4, 4), weights(4, 3))
    merged = merged_to_words(record)
    assert merged.source == ("animal", "</s>")
    assert merged.target == ("Tier", "ja", "</s>")
    for name in ("encoder", "decoder", "cross"):
        np.testing.assert_allclose(getattr(merged, name).sum(-1), 1)
    # What the step of "ja" had read: <s> | Ti er | (ja is the word being written).
    np.testing.assert_allclose(merged.decoder[..., 1, 0], record.decoder[..., 2, 0])
    np.testing.assert_allclose(merged.decoder[..., 1, 1], record.decoder[..., 2, 1:3].sum(-1))
    columns = merged.heatmap("decoder", 0).columns
    assert columns == ("<s>", "Tier", "ja")


def test_a_record_that_was_cut_off_in_a_word() -> None:
    ones = np.ones((1, 1, 2, 2)) / 2
    merged = merged_to_words(AttentionRecord(["▁a", "</s>"], ["▁Ti", "er"], ones, ones, ones))
    assert merged.target == ("Ti", "er")
