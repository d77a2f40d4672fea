"""Text is cut into what is searched at once, and its translation stands where it stood."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from serving_echo import TEXT

from dragoman.forms.text_form import TextForm
from dragoman.tasks.language_model.runtime import NoSource

ENGLISH, GERMAN = TextForm(TEXT, "en"), TextForm(TEXT, "de")


def spelled(text: str) -> str:
    return "".join(text.split())


@given(st.lists(st.text(max_size=80), max_size=4), st.booleans(), st.sampled_from([200, 7]))
def test_pieces_put_together_are_the_text(texts: list[str], whole: bool, longest: int) -> None:
    passages = ENGLISH.cut(texts, GERMAN, longest=longest, whole=whole)
    for text, passage in zip(texts, passages, strict=True):
        joined = passage.join([piece.text for piece in passage.pieces])
        if longest == 200:
            assert spelled(joined) == spelled(text)
        assert all(len(piece.values) <= longest for piece in passage.pieces)
        assert all(piece.values[-1] == TEXT.eos for piece in passage.pieces)


def test_a_long_sentence_is_cut_between_words() -> None:
    text = " ".join(["The", "animal", "eats", "bread"] * 40)
    (passage,) = ENGLISH.cut([text], GERMAN, longest=20, whole=True)
    assert passage.join([piece.text for piece in passage.pieces]) == text


def test_a_long_text_is_cut_into_sentences_first() -> None:
    text = "The animal eats bread. " * 9
    (whole,) = ENGLISH.cut([text], GERMAN, longest=20, whole=True)
    assert [piece.text for piece in whole.pieces] == ["The animal eats bread."] * 9
    (short,) = ENGLISH.cut([text[:22]], GERMAN, longest=200, whole=True)
    assert short.is_bare


def test_sentences_without_spaces_get_them_where_the_translation_has_them() -> None:
    text = "  今日は雨です。明日は？\n\n終わり\n"
    japanese, chinese = TextForm(TEXT, "ja"), TextForm(TEXT, "zh")
    (into_english,) = japanese.cut([text], ENGLISH, longest=200, whole=False)
    assert into_english.join(["It rains.", "Tomorrow?", "End"]) == "  It rains. Tomorrow?\n\nEnd\n"
    (into_chinese,) = japanese.cut([text], chinese, longest=200, whole=False)
    assert into_chinese.join(["下雨。", "明天？", "完"]) == "  下雨。明天？\n\n完\n"


def test_what_the_vocabulary_cannot_write_stays_where_it_stood() -> None:
    """A control character, also as a sentence inside a line that is too long to be read at once."""
    assert len(ENGLISH.values(["\x01"])[0]) == 1
    text = f"{'The animal eats bread. ' * 9}\n\x01\nThe animal sleeps."
    for whole in (False, True):
        (passage,) = ENGLISH.cut([text], GERMAN, longest=20, whole=whole)
        assert all(len(piece.values) > 1 for piece in passage.pieces)
        assert passage.join(["…"] * len(passage.pieces)).endswith("… \n\x01\n…")


def test_nothing_is_read_as_the_end_symbol_alone() -> None:
    nothing = NoSource(TEXT.eos)
    passages = nothing.cut(["", "whatever is given"], ENGLISH, longest=5, whole=False)
    assert [[piece.values for piece in passage.pieces] for passage in passages] == [
        [(TEXT.eos,)]
    ] * 2
    assert nothing.values(["", "a b"]) == [[TEXT.eos]] * 2
    assert [passage.join(["Once."]) for passage in passages] == ["Once.", "Once."]
