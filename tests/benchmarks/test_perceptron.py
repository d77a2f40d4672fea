"""The averaged perceptron that taggers are measured beside."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "perceptron.py"
sys.path.insert(0, str(BENCHMARK.parent))

from perceptron import Perceptron, features, normal  # noqa: E402


def sentences(count: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Whether ``run`` is a noun or a verb, the word before it tells."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        words, tags = [], []
        for _ in range(draw.randint(1, 3)):
            first, tag, own = draw.choice([("the", "DT", "NN"), ("we", "PRP", "VB")])
            words += [first, draw.choice(["run", "sleep", "walk"])]
            tags += [tag, own]
        found.append((words, tags))
    return found


def test_it_learns_from_what_stands_around() -> None:
    made = Perceptron.train(sentences(60, 1), epochs=3, seed=1)
    for words, tags in sentences(40, 2):
        assert made.tag(words) == tags
    assert made.tag([]) == []


def test_weights_are_the_mean_over_all_that_was_seen() -> None:
    """Two words with one feature each, computed by hand: after each word the weights are added."""
    made = Perceptron(["A", "B"], {})
    made._seen = 1
    made._change("f", "A", 1.0)
    made._seen = 2
    made._seen = 3
    made._change("f", "A", 1.0)
    made._seen = 4
    made._average()
    assert made._weights["f"]["A"] == pytest.approx((0 + 1 + 1 + 2) / 4)


def test_features_are_those_of_a_window_of_two_words() -> None:
    context = ["-START2-", "-START-", "the", "cats", "-END-", "-END2-"]
    named = set(features(1, "cats", context, "DT", "-START-"))
    assert {"suffix ats", "first c", "tag-1 DT", "tags DT -START-", "word-1 the", "word-2 -START-",
            "word+1 -END-", "word+2 -END2-", "tag-1 word DT cats"} <= named  # fmt: skip
    assert [normal(word) for word in ("In", "1984", "12", "3rd", "well-known", "-")] == [
        "in", "!YEAR", "!DIGITS", "!DIGITS", "!HYPHEN", "-"
    ]  # fmt: skip


def test_the_program_measures_known_and_unknown_words(tmp_path: Path) -> None:
    for name, seed in (("train.txt", 1), ("test.txt", 2)):
        lines = [
            " ".join(f"{word}_{tag}" for word, tag in zip(*one, strict=True))
            for one in sentences(40, seed)
        ]
        new = "\nthe_DT zebra_NN" if name == "test.txt" else ""
        (tmp_path / name).write_text("\n".join(lines) + new + "\n", encoding="utf-8")
    found = subprocess.run(
        [sys.executable, BENCHMARK, tmp_path / "train.txt", tmp_path / "test.txt"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "40 sentences to learn from, 41 to test" in found
    assert "averaged perceptron, 5 epochs: accuracy 100.0 %, known 100.0 %, unknown" in found
