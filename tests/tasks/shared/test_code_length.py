"""Bytes that tokens stand for: what bits per byte are divided by."""

from __future__ import annotations

import math

import pytest

from dragoman.forms.subwords.text import Text, TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.tasks.shared.surprisal import Length

LEARNED = ["The cat sleeps.", "A dog sees the cat, and the cat sees it.", "über  allem"] * 4
TEXTS = [
    "The cat\nsees über allem.",
    "",
    "  two  spaces ",
    "▁ and ｆｕｌｌ width",
    "한 cat 글!",
    "한",
]


def text_of(kind: str, **settings: object) -> Text:
    wanted = {"kind": kind, "vocabulary": 300, "character_coverage": 1.0, **settings}
    return learn_vocabulary(LEARNED, TextSettings.model_validate(wanted))


def length_of(vocabulary: Text, text: str) -> Length:
    return Length.of(vocabulary, text, vocabulary.encode([text])[0])


@pytest.mark.parametrize("kind", ["bpe", "char"])
@pytest.mark.parametrize("text", TEXTS)
def test_without_loss_the_bytes_are_those_of_the_file(kind: str, text: str) -> None:
    found = length_of(text_of(kind, lossless=True), text)
    assert found.bytes == found.given == len(text.encode()) + 1 and not found.unknown


@pytest.mark.parametrize("text", TEXTS[:3] + TEXTS[4:])
@pytest.mark.parametrize("kind", ["bpe", "char", "word"])
def test_a_normalised_text_has_the_bytes_of_what_comes_back(kind: str, text: str) -> None:
    vocabulary = text_of(kind)
    tokens = vocabulary.encode([text])[0]
    found = Length.of(vocabulary, text, tokens)
    if vocabulary.unknown not in tokens:
        assert found.bytes == len(vocabulary.decode_exact(tokens).encode()) + 1
        assert not found.unknown


def test_unknown_characters_cost_their_bytes() -> None:
    vocabulary = text_of("char", byte_fallback=False, vocabulary=60)
    known, foreign = length_of(vocabulary, "cat sees cat"), length_of(vocabulary, "cat 한글 cat")
    assert known.unknown == 0 and foreign.unknown == len("한글".encode())
    assert foreign.bytes == len("cat 한글 cat".encode()) + 1
    nll = 3.0
    bits = foreign.scores(nll)["bits_per_byte"] * foreign.bytes
    assert bits == pytest.approx(nll / math.log(2) + 8 * foreign.unknown)
    words = length_of(text_of("word", byte_fallback=False, vocabulary=60), "the zebra cat")
    assert words.unknown == len(" zebra")


def test_lengths_add_up() -> None:
    vocabulary = text_of("char", byte_fallback=False, vocabulary=60)
    parts = [length_of(vocabulary, text) for text in ("a cat", "한", "")]
    whole = sum(parts, Length())
    assert whole == Length(
        *(sum(getattr(p, name) for p in parts) for name in ("tokens", "bytes", "given", "unknown"))
    )
