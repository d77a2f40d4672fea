"""Runs that hear are compared by WER and CER, and the test draws speakers, as drawing them by hand
does."""

from __future__ import annotations

import random
import unicodedata

import numpy as np
import pytest

from dragoman.metrics.significance import Test
from dragoman.metrics.word_errors import chance_of_word_errors, compare_word_errors

jiwer = pytest.importorskip("jiwer", reason="pip install jiwer")

WORDS = ("one", "two", "three", "four", "five", "six", "seven")
SAMPLES = 60


def heard(seed: int, said: list[str], share: float) -> list[str]:
    """Some of the words are heard as others, left out, or heard twice."""
    draw = random.Random(seed)
    lines = []
    for line in said:
        words: list[str] = []
        for word in line.split():
            if draw.random() > share:
                words.append(word)
            else:
                words += draw.choice(([], [draw.choice(WORDS)], [word, word]))
        lines.append(" ".join(words))
    return lines


def example(
    speakers: int, seed: int = 1
) -> tuple[dict[str, list[list[str]]], list[str], list[str]]:
    draw = random.Random(seed)
    said = [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(40)]
    groups = [f"s{draw.randrange(speakers)}" for _ in said]
    systems = {"good": [heard(2, said, 0.1)], "bad": [heard(3, said, 0.3), heard(4, said, 0.4)]}
    return systems, said, groups


def drawn_by_hand(
    systems: dict[str, list[list[str]]], said: list[str], groups: list[str], seed: int
) -> dict[str, list[float]]:
    """The WER of each system, of some test sets that are made of whole speakers."""
    names = list(dict.fromkeys(groups))
    found: dict[str, list[float]] = {name: [] for name in systems}
    for row in np.random.default_rng(seed).choice(len(names), (SAMPLES, len(names))):
        places = [n for one in row for n, group in enumerate(groups) if group == names[one]]
        for name, runs in systems.items():
            rates = [jiwer.wer([said[n] for n in places], [run[n] for n in places]) for run in runs]
            found[name].append(100 * float(np.mean(rates)))
    return found


@pytest.mark.parametrize("speakers", [16, 30])
def test_whole_speakers_are_drawn(speakers: int) -> None:
    systems, said, groups = example(speakers)
    found = compare_word_errors(systems, said, groups, samples=SAMPLES, seed=7)
    assert (found.sentences, found.unit) == (len(set(groups)), "speaker")
    assert f"seed 7, {len(set(groups))} speakers" in found.table()
    assert "40 recordings: whole speakers are drawn" in found.table()
    good, bad = found.comparisons[0].scores
    by_hand = drawn_by_hand(systems, said, groups, 7)
    for score, runs in ((good, systems["good"]), (bad, systems["bad"])):
        whole = [100 * jiwer.wer(said, run) for run in runs]
        assert score.value == pytest.approx(np.mean(whole))
        values = np.sort(by_hand[score.system])
        cut = SAMPLES // 40
        assert score.mean == pytest.approx(values.mean())
        assert score.interval == pytest.approx((values[-cut - 1] - values[cut]) / 2)
    differences = np.abs(np.subtract(by_hand["bad"], by_hand["good"]))
    beyond = int((differences - differences.mean() >= abs(bad.value - good.value) - 1e-9).sum())
    assert bad.p_value == pytest.approx((beyond + 1) / (SAMPLES + 1))
    characters = found.comparisons[1].scores[0].value
    assert characters == pytest.approx(100 * jiwer.cer(said, systems["good"][0]))


@pytest.mark.parametrize("groups", [[f"hash {n}" for n in range(40)], ["one"] * 40])
def test_where_no_speaker_is_known_recordings_are_drawn(groups: list[str]) -> None:
    systems, said, _ = example(4)
    found = compare_word_errors(systems, said, groups, samples=SAMPLES, seed=7)
    assert (found.sentences, found.unit, found.notes) == (40, "recording", ())
    by_hand = drawn_by_hand(systems, said, [str(n) for n in range(40)], 7)
    assert found.comparisons[0].scores[0].mean == pytest.approx(np.mean(by_hand["good"]))


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_speakers_are_exchanged_as_a_whole(test: Test) -> None:
    """One run is worse by ten words on one speaker and better by four on the other: each of the
    four exchanges makes the difference as large or larger, and few of those of 14 recordings."""
    said = ["one"] * 14
    systems = {"one": [["one"] * 10 + ["two"] * 4], "other": [["two"] * 10 + ["one"] * 4]}
    by_speaker, by_recording = (
        compare_word_errors(systems, said, groups, test, 1_000)
        for groups in (["a"] * 10 + ["b"] * 4, [str(n) for n in range(14)])
    )
    assert by_speaker.comparisons[0].scores[1].p_value == 1
    assert "WER, CER of other: 2 of 2 speakers differ" in by_speaker.table()
    assert "±" not in by_speaker.table() and "* differs" not in by_speaker.table()
    p_value = by_recording.comparisons[0].scores[1].p_value
    assert p_value is not None and p_value < 0.2


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
@pytest.mark.parametrize(("speakers", "p_value"), [(1, 1.0), (2, 0.5), (5, 1 / 16), (6, 1 / 32)])
def test_few_speakers_are_never_surely_different(test: Test, speakers: int, p_value: float) -> None:
    """Where one run is right and the other wrong for each of them, the exchange of none and that of
    all make the difference as large."""
    said = ["one two"] * 2 * speakers
    groups = [f"s{n // 2}" for n in range(len(said))]
    found = compare_word_errors({"a": [said], "b": [["x y"] * len(said)]}, said, groups, test)
    if speakers == 1:  # one speaker of all recordings is none that is known
        found = compare_word_errors({"a": [said[:1]], "b": [["x y"]]}, said[:1], ["s"], test)
    for comparison in found.comparisons:
        assert comparison.scores[1].p_value == p_value
    assert ("*" in found.table()) == (speakers > 5)


def test_decomposed_text_is_compared_as_composed_text() -> None:
    said = ["über Äcker", "große Bären"] * 3
    apart = [unicodedata.normalize("NFD", line) for line in said]
    groups = [str(n) for n in range(6)]
    found = compare_word_errors({"a": [said], "b": [["x y"] * 6]}, apart, groups)
    plain = compare_word_errors({"a": [said], "b": [["x y"] * 6]}, said, groups)
    for one, expected in zip(found.comparisons, plain.comparisons, strict=True):
        assert one.scores == expected.scores and one.scores[0].value == 0
        assert one.signature == f"{expected.signature}|unicode:NFC"
    assert chance_of_word_errors([said[0], apart[0], "one two three"], apart[:1]) == 100 * 3 / 7


def test_less_is_better() -> None:
    systems, said, groups = example(4)
    wer = compare_word_errors(systems, said, groups, samples=SAMPLES).comparisons[0]
    assert wer.best == min(score.value for score in wer.scores) == wer.scores[0].value


def test_a_guess_says_nothing_or_the_most_frequent_text() -> None:
    """Of training: a test set of few recordings would else give its own answers away."""
    assert chance_of_word_errors(["one", "one", "two", "three"], ["two", "one", " one "]) == 50
    assert chance_of_word_errors(["one", "one", "two", "three"], ["nine", "nine", "two"]) == 100
    assert chance_of_word_errors(["one two three", "four"], []) == 100
    # Even the most frequent text may be worse than none.
    assert chance_of_word_errors(["f", "g", "h", "a b c d e"], ["a b c d e"] * 2) == 100
