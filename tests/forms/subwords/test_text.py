"""Vocabularies: round trips, settings that travel, clear errors, keyed sampling."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman.base.errors import DataError, RunError
from dragoman.forms.shown_words import BYTE, words_of
from dragoman.forms.subwords import text as text_module
from dragoman.forms.subwords.sampling import BpeDropout, Pieces, UnigramSampling
from dragoman.forms.subwords.text import MOST_TOKENS, Text, TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary

_SYLLABLES = ["ka", "lo", "mi", "ru", "se", "tan", "vor", "wel", "ö", "ß", "한", "국"]


def _corpus(sentences: int = 400, seed: int = 0) -> list[str]:
    """Words of an invented language: enough repetition to learn merges from."""
    chance = random.Random(seed)
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(150)]
    return [
        " ".join(chance.choices(words, k=chance.randint(1, 12))) + "." for _ in range(sentences)
    ]


CORPUS = _corpus()
UNSEEN = [*_corpus(200, seed=1), "", " ", "Zwölf Boxkämpfer!", "日本語 x", "ka" * 60, "a  b ka 😀"]


@pytest.fixture(scope="module")
def plain() -> Text:
    return learn_vocabulary(CORPUS, TextSettings(vocabulary=450), seed=1)


@pytest.fixture(scope="module")
def exact() -> Text:
    return learn_vocabulary(CORPUS, TextSettings(vocabulary=450, lossless=True), seed=1)


def _sampling(text: Text, probability: float) -> Text:
    return Text(text._model, text.settings.model_copy(update={"sampling": probability}))


def test_special_symbols_have_their_places(plain: Text) -> None:
    assert (plain.unknown, plain.bos, plain.eos, plain.size) == (0, 1, 2, 450)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "word"])
def test_each_kind_gives_its_own_text_back(kind: str) -> None:
    vocabulary = 330 if kind == "unigram" else 450
    text = learn_vocabulary(CORPUS, TextSettings(kind=kind, vocabulary=vocabulary))
    encoded = text.encode(CORPUS)
    assert text.decode_batch(encoded) == CORPUS
    assert all(ids.dtype == np.int32 and ids.min() > 2 for ids in encoded)


@given(st.text())
@example("▁ ▁▁  \u2028\x00\r\n\t<s></s><unk><0x41>\ufeff\u200be\u0301\U0001f600")
@example(" ")
@settings(deadline=None)
def test_lossless_gives_every_string_back(exact: Text, string: str) -> None:
    ids = exact.encode([string])[0]
    assert exact.decode_exact(ids) == string
    assert exact.decode(ids) == string.replace("\n", " ")


@given(st.text(), st.integers(0, 2**64 - 1))
@example("▁ ▁▁ a\n", 3)
@settings(deadline=None, max_examples=50)
def test_lossless_sampling_gives_every_string_back(exact: Text, string: str, key: int) -> None:
    assert _sampling(exact, 0.3).decode_exact(_sampling(exact, 0.3).sample(string, key)) == string


def test_lossless_without_any_space_in_training() -> None:
    text = learn_vocabulary(
        ["日本語", "日本", "語学"] * 5, TextSettings(vocabulary=266, lossless=True)
    )
    for string in ("日 本", " ", "▁ ▁"):
        assert text.decode_exact(text.encode([string])[0]) == string


@given(st.lists(st.integers(0, 449), max_size=12))
@settings(deadline=None)
def test_what_is_generated_stays_on_one_line(plain: Text, exact: Text, ids: list[int]) -> None:
    assert "\n" not in plain.decode(ids)
    assert "\n" not in exact.decode(ids)


@given(st.lists(st.lists(st.integers(0, 449), max_size=12), max_size=8))
@settings(deadline=None)
def test_bytes_that_are_no_character_are_left_out(plain: Text, batch: list[list[int]]) -> None:
    """Whatever a model writes: all that is UTF-8 stands there, and nothing unreadable."""
    decoded = plain.decode_batch(batch)
    for ids, text in zip(batch, decoded, strict=True):
        written = b"".join(
            bytes([int(byte[1], 16)]) if (byte := BYTE.match(piece)) else piece.encode()
            for token, piece in zip(ids, plain.pieces(ids), strict=True)
            if plain.ordinary[token]
        )
        readable = written.decode("utf-8", "ignore")
        assert text == plain.decode(ids)
        assert "\ufffd" not in text
        if all(plain.ordinary[token] for token in ids) and "\0" not in readable:
            assert text.strip() == readable.replace("▁", " ").replace("\n", " ").strip()
        words = words_of(text, plain.pieces(ids), [0.0] * len(ids))
        assert "".join(word.before + word.text for word in words) == text


def test_a_newline_byte_becomes_a_space(plain: Text) -> None:
    newline = plain.pieces(range(plain.size)).index("<0x0A>")
    assert plain.decode([newline, *plain.encode(["ka"])[0]]) == "  ka"


def test_invalid_bytes_are_read_as_replacement_characters(exact: Text) -> None:
    assert (
        exact.decode(exact.encode([b"ka\xff".decode("utf-8", "surrogateescape")])[0]) == "ka\ufffd"
    )


def test_normalisation() -> None:
    decomposed = "e\u0301\u00a0ﬁ"
    for rule, expected in (("nfc", "é\u00a0ﬁ"), ("nfkc", "é fi"), ("identity", decomposed)):
        text = learn_vocabulary(CORPUS, TextSettings(vocabulary=450, normalization=rule))
        assert text.decode(text.encode([decomposed])[0]) == expected
    folded = learn_vocabulary(CORPUS, TextSettings(vocabulary=450, normalization="nfkc_cf"))
    assert folded.decode(folded.encode(["KA"])[0]) == "ka"


def test_user_symbols_are_one_token() -> None:
    symbols = ("<2de>", "kalo")
    text = learn_vocabulary(
        CORPUS, TextSettings(vocabulary=450, user_symbols=symbols, sampling=0.9)
    )
    string = "ka<2de>lomi kalokalo"
    for ids in (text.encode([string])[0], *(text.sample(string, key) for key in range(20))):
        pieces = Counter(text.pieces(ids))
        assert pieces["<2de>"] == 1 and pieces["kalo"] == 2
        assert text.decode(ids) == string


def test_saved_and_loaded(plain: Text, tmp_path: Path) -> None:
    plain.save(tmp_path / "shared.model")
    loaded = Text.load(tmp_path / "shared.model")
    assert (loaded.fingerprint, loaded.settings) == (plain.fingerprint, plain.settings)
    assert [path.name for path in tmp_path.iterdir()] == ["shared.model"]
    # SentencePiece itself reads the file too.
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "shared.model"))
    assert theirs.encode(CORPUS[:20]) == [ids.tolist() for ids in loaded.encode(CORPUS[:20])]


def test_other_settings_are_another_fingerprint(plain: Text) -> None:
    assert _sampling(plain, 0.1).fingerprint != plain.fingerprint
    assert _sampling(plain, 0.0).fingerprint == plain.fingerprint


def test_training_is_reproducible() -> None:
    few = TextSettings(vocabulary=400, sample_sentences=100)
    first, second, third = (learn_vocabulary(CORPUS, few, seed=seed) for seed in (1, 1, 2))
    assert first.fingerprint == second.fingerprint != third.fingerprint


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_too_large_a_vocabulary_names_the_largest(kind: str) -> None:
    with pytest.raises(DataError, match=r"the largest possible is ([\d,]+)") as caught:
        learn_vocabulary(CORPUS, TextSettings(kind=kind, vocabulary=9000))
    largest = int(str(caught.value).split("possible is ")[1].split(". ")[0].replace(",", ""))
    assert learn_vocabulary(CORPUS, TextSettings(kind=kind, vocabulary=largest)).size == largest


def test_too_small_a_vocabulary_names_the_smallest() -> None:
    with pytest.raises(DataError, match=r"at least 2\d\d"):
        learn_vocabulary(CORPUS, TextSettings(vocabulary=100))


@pytest.mark.parametrize("sentences", [[], ["", "  "]])
def test_no_text(sentences: list[str]) -> None:
    with pytest.raises(DataError, match="no text"):
        learn_vocabulary(sentences, TextSettings())


def test_files_that_are_no_vocabulary(tmp_path: Path, plain: Text) -> None:
    with pytest.raises(RunError, match="cannot read"):
        Text.load(tmp_path / "none.model")
    (tmp_path / "text.model").write_text("this is not a model at all")
    plain.save(tmp_path / "cut.model")
    whole = (tmp_path / "cut.model").read_bytes()
    (tmp_path / "cut.model").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.model").touch()
    for name in ("text.model", "cut.model", "empty.model"):
        with pytest.raises(RunError, match=name):
            Text.load(tmp_path / name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lossless": True, "byte_fallback": False},
        {"kind": "char", "sampling": 0.1},
        {"user_symbols": ["a b"]},
    ],
)
def test_settings_that_contradict(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TextSettings.model_validate(wrong)


# Sampling


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_dropping_nothing_is_sentencepiece(byte_fallback: bool) -> None:
    asked = TextSettings(vocabulary=400 if byte_fallback else 140, byte_fallback=byte_fallback)
    text = learn_vocabulary(CORPUS, asked)
    sampler = BpeDropout(text._pieces_for_sampling(), 0.0)
    for string in [*CORPUS, *UNSEEN]:
        expected = text.encode([string])[0].tolist()
        assert sampler.segment(text._normalise(string), key=7) == expected


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_is_a_pure_function_of_text_and_key(kind: str) -> None:
    asked = TextSettings(kind=kind, vocabulary=330, sampling=0.3)
    one, other = (learn_vocabulary(CORPUS, asked) for _ in range(2))
    strings = [string for string in UNSEEN for _ in range(3)]
    forward = [one.sample(string, key) for key, string in enumerate(strings)]
    backward = [other.sample(s, key) for key, s in reversed(list(enumerate(strings)))]
    assert all(np.array_equal(a, b) for a, b in zip(forward, reversed(backward), strict=True))
    assert [one.decode(ids) for ids in forward] == one.decode_batch(one.encode(strings))
    assert len({tuple(one.sample(CORPUS[0], key)) for key in range(50)}) > 10


def test_forgetting_changes_nothing(plain: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [_sampling(plain, 0.3).sample(string, 5) for string in CORPUS[:50]]
    monkeypatch.setattr("dragoman.forms.subwords.sampling.CACHED_NODES", 3)
    forgetful = _sampling(plain, 0.3)
    assert all(
        np.array_equal(forgetful.sample(string, 5), ids)
        for string, ids in zip(CORPUS[:50], expected, strict=True)
    )


@pytest.mark.parametrize(("kind", "strength"), [("bpe", 0.1), ("bpe", 0.4), ("unigram", 0.3)])
def test_the_distribution_is_that_of_sentencepiece(kind: str, strength: float) -> None:
    """Two samples of 20,000 segmentations, theirs and ours, of a few words."""
    text = learn_vocabulary(CORPUS, TextSettings(kind=kind, vocabulary=330, sampling=strength))
    sampler = text._sampler
    assert sampler is not None
    words = sorted({word for line in CORPUS[:30] for word in line.split()}, key=len)[-4:]
    draws = 20_000
    for number, word in enumerate(words):
        normalised = text._normalise(word)
        ours = Counter(
            tuple(sampler.segment(normalised, draws * number + key)) for key in range(draws)
        )
        theirs = Counter(
            tuple(ids)
            for ids in text._processor.encode(
                [word] * draws, enable_sampling=True, alpha=strength, nbest_size=-1
            )
        )
        keys = ours.keys() | theirs.keys()
        distance = sum(abs(ours[key] - theirs[key]) for key in keys) / (2 * draws)
        # Twice what two samples of one distribution with so many outcomes differ by.
        noise = sum(
            np.sqrt((ours[key] + theirs[key]) / (2 * draws) / (np.pi * draws)) for key in keys
        )
        assert distance < 2 * noise + 0.005, word


def test_pieces_that_reach_across_words_are_sampled_whole() -> None:
    """A vocabulary made elsewhere may merge over spaces; then text is not cut into words."""
    scores = {"▁": -9.0, "a": -9.0, "b": -9.0, "▁a": -1.0, "▁a▁": -2.0, "▁a▁b": -3.0}
    ids = {piece: 3 + place for place, piece in enumerate(scores)}
    pieces = Pieces(scores, ids, None, 0)
    assert BpeDropout(pieces, 0.0).segment("▁a▁b", 1) == [ids["▁a▁b"]]
    assert set(map(tuple, (UnigramSampling(pieces, 0.1).segment("▁a▁b", k) for k in range(99)))) > {
        (ids["▁a▁b"],)
    }


def test_the_largest_vocabulary_that_can_be_learned_can_be_read() -> None:
    """Each token has 16 characters at most, of four bytes, a score and the lengths of its fields:
    12 bytes."""
    assert text_module._MOST_BYTES > MOST_TOKENS * (16 * 4 + 12)
