"""WER and CER against jiwer, and alignments that are what they say."""

from __future__ import annotations

import random
import unicodedata

import pytest

from dragoman.metrics.word_errors import SIGNATURE, ErrorCounts, WordErrors, align, tally

jiwer = pytest.importorskip("jiwer", reason="pip install jiwer")


def some_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    words = ["a", "ab", "b", "über", "Ab", "c,", "d"]
    return [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count)]


def test_rates_are_those_of_jiwer() -> None:
    said, written = some_texts(200, 1), some_texts(200, 2)
    written[:5] = ["", *said[1:5]]
    found = WordErrors.of(said, written)
    assert found.words.rate == pytest.approx(100 * jiwer.wer(said, written), abs=1e-9)
    assert found.characters.rate == pytest.approx(100 * jiwer.cer(said, written), abs=1e-9)
    for one, (left, right) in zip(found.by_text, zip(said, written, strict=True), strict=True):
        oracle = jiwer.process_words(left, right)
        expected = oracle.substitutions, oracle.deletions, oracle.insertions
        assert (one.substitutions, one.deletions, one.insertions) == expected
    assert found.without_error == sum(a == b for a, b in zip(said, written, strict=True)) >= 4


def test_an_alignment_holds_both_texts_in_their_order() -> None:
    for said, written in zip(some_texts(100, 3), some_texts(100, 4), strict=True):
        steps = align(said.split(), written.split())
        assert [one for _, one, _ in steps if one] == said.split()
        assert [one for _, _, one in steps if one] == written.split()
        for change, one, other in steps:
            assert change == (
                "deleted" if not other else "inserted" if not one
                else "right" if one == other else "substituted"
            )  # fmt: skip


def test_decomposed_text_counts_as_composed_text() -> None:
    said = ["über Äcker", "그 책은 재미있었습니다"]
    written = [unicodedata.normalize("NFD", line) for line in ("über Acker", said[1])]
    found = WordErrors.of(said, written)
    assert (found.words.errors, found.characters.errors) == (1, 1)
    assert found.signature == f"{SIGNATURE}|unicode:NFC"
    assert found.signature in found.table(["a", "b"])
    composed = WordErrors.of(said, said)
    assert composed.signature == SIGNATURE and "NFC" not in composed.table(["a", "b"])


def test_nothing_said_and_nothing_written() -> None:
    assert tally([], []) == ErrorCounts()
    assert tally([], []).rate == 0
    assert tally(["a"], []) == ErrorCounts(deletions=1, reference=1)
    assert tally([], ["a", "b"]).rate == 200


def test_no_fewer_changes_make_one_text_of_another() -> None:
    """The whole table of Levenshtein (1966), which shares no code with RapidFuzz and jiwer."""
    for left, right in zip(some_texts(200, 6), some_texts(200, 7), strict=True):
        said, written = left.split(), right.split()
        row = list(range(len(written) + 1))
        for number, old in enumerate(said, 1):
            before, row = row, [number]
            for place, new in enumerate(written, 1):
                least = before[place - 1] + (old != new), before[place] + 1, row[-1] + 1
                row.append(min(least))
        assert tally(said, written).errors == row[-1]


def test_long_texts_have_the_rates_of_jiwer() -> None:
    """Words are left out in the first half and added in the second: like shares of both texts do
    not belong together."""
    draw = random.Random(8)
    said = " ".join(some_texts(900, 8)).split()
    half = len(said) // 2
    written = [word for word in said[:half] if draw.random() > 0.2]
    for word in said[half:]:
        written += [word] if draw.random() > 0.2 else [word, draw.choice(said)]
    texts = " ".join(said), " ".join(written)
    assert len(said) > 4_096 and len(texts[1]) > 4_096
    found = WordErrors.of(*([text] for text in texts))
    assert found.words.rate == pytest.approx(100 * jiwer.wer(*texts), abs=1e-9)
    assert found.characters.rate == pytest.approx(100 * jiwer.cer(*texts), abs=1e-9)


def test_the_worst_are_shown_aligned() -> None:
    found = WordErrors.of(["the dog sleeps", "one", "two"], ["the frog", "one", "two too two"])
    assert found.worst() == [0, 2]
    assert found.table(["a.wav", "b.wav", "c.wav"]) == (
        "WER   80.00 %  1 substitution, 1 deletion, 2 insertions in 5 words\n"
        "CER   85.00 %  1 substitution, 7 deletions, 9 insertions in 20 characters\n"
        "1 of 3 recordings without an error\n"
        "\n"
        "a.wav: 1 substitution, 1 deletion, 0 insertions in 3 words\n"
        "  said    the dog  sleeps\n"
        "  heard   the frog ******\n"
        "              S    D\n"
        "\n"
        "c.wav: 0 substitutions, 0 deletions, 2 insertions in 1 word\n"
        "  said    two *** ***\n"
        "  heard   two too two\n"
        "              I   I"
    )


def test_what_was_read_is_called_by_its_name() -> None:
    found = WordErrors.of(["the dog", "one"], ["the frog", "one"])
    assert "1 of 2 recordings without an error" in found.table(["a", "b"])
    of_lines = found.table(["a", "b"], "picture")
    assert "1 of 2 pictures without an error" in of_lines and "heard" not in of_lines
    assert "  is      the dog\n  read    the frog\n" in of_lines
    assert found.to_dict(["a", "b"], "picture")["worst"][0]["picture"] == "a"
