"""Words, and which of them were read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import RunError
from dragoman.forms import lexicon
from dragoman.forms.lexicon import Lexicon, words_in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "The animal didn't cross 3.5 roads.",
            ["The", "animal", "didn't", "cross", "3.5", "roads"],
        ),
        ("l’homme a-t-il dit", ["l’homme", "a", "t", "il", "dit"]),
        ("고양이가 잔다. x_1 <b>fett</b> 🐱", ["고양이가", "잔다", "x", "1", "b", "fett", "b"]),
        ("हिन्दी में लिखा", ["हिन्दी", "में", "लिखा"]),
        ("nai\u0308ve", ["nai\u0308ve"]),
        ("", []),
    ],
)
def test_words_are_letters_with_their_marks_and_apostrophes(text: str, words: list[str]) -> None:
    assert [text[begin:end] for begin, end in words_in(text)] == words


def test_what_was_read_is_known_in_any_case_and_in_parts() -> None:
    lexicon = Lexicon.count(["The dog didn't see the Straße.", "THE END"])
    assert lexicon.has("dog") and lexicon.has("DOG") and lexicon.has("STRASSE")
    assert lexicon.has("didn't") and lexicon.has("didn’t") and not lexicon.has("hadn't")
    assert lexicon.has("1984"), "numbers are always new"
    assert next(iter(lexicon.counts.items())) == ("the", 3)
    assert "didn't" in lexicon.counts and "didn" not in lexicon.counts, "words are kept whole"
    assert Lexicon.count(["Didn’t they? 7 3.5"]).counts == {"didn't": 1, "they": 1}


def test_how_common_a_word_is() -> None:
    lexicon = Lexicon.count(["the the the the a a a dog's dog bark"])
    shares = [
        lexicon.share_before(word) for word in ("The", "a", "dog", "bark", "cat", "7", "dog's")
    ]
    assert shares[:3] == [0, 4 / 11, 7 / 11]
    assert 9 / 11 <= shares[3] < 1 and shares[4:6] == [1, 1]
    assert shares[6] == lexicon.share_before("s") > shares[2], "the rarest part counts"


def test_the_words_of_two_lexica() -> None:
    both = Lexicon.count(["the dog"]).join(Lexicon.count(["the cat"]))
    assert both.counts == {"the": 2, "dog": 1, "cat": 1}


@given(st.lists(st.text(max_size=40), max_size=5))
def test_a_lexicon_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("lexicon") / "lexicon.txt"
    lexicon = Lexicon.count(texts)
    lexicon.save(path)
    read = Lexicon.load(path)
    assert read is not None and list(read.counts.items()) == list(lexicon.counts.items())
    assert all(read.has(text[begin:end]) for text in texts for begin, end in words_in(text))


def test_none_is_no_lexicon_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.txt"
    assert Lexicon.load(path) is None
    for damage in (
        b"3 the\n",
        b"0\tthe\n",
        b"x\tthe\n",
        b"1\ta b\n",
        b"1\t" + b"a" * 90 + b"\n",
        b"1\t\xff\n",
    ):
        path.write_bytes(b"5\tin\n" + damage)
        with pytest.raises(RunError, match="Remove it"):
            Lexicon.load(path)
    path.write_bytes(b"1\ta\n" * 200_001)
    with pytest.raises(RunError, match="Remove it"):
        Lexicon.load(path)


def test_what_was_counted_can_be_read_again_where_words_are_phrases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a script has no spaces, each word is another, and has three bytes a letter."""
    monkeypatch.setattr(lexicon, "_MOST_BYTES", 10_000)
    draw = random.Random(1)
    letters = [chr(0x0E01 + n) for n in range(40)]
    phrases = ["".join(draw.choices(letters, k=50)) for _ in range(400)]
    counted = Lexicon.count(["กข " * 5, *phrases])
    for one in (counted, counted.join(Lexicon.count(phrases[::-1]))):
        one.save(tmp_path / "words")
        found = Lexicon.load(tmp_path / "words")
        assert found is not None and found.counts == one.counts
        assert next(iter(found.counts)) == "กข" and len(found) > 10
