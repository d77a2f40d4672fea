"""A vocabulary that the characters of its text fit into."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from recipe_of_files import recipe_of

from dragoman.forms.subwords.text import TextSettings
from dragoman.sizing.vocabulary_size import _Counts

APART = ("text.shared=false", "model.tie=target")


def test_characters_are_counted_from_the_most_frequent_on() -> None:
    text = "aaaa bbb cc d"
    counts = _Counts([text], TextSettings.model_validate({"vocabulary": 100}))
    # One space stands before a line, and one is there in any case.
    every = Counter("  " + text)
    shares = [count / every.total() for _, count in every.most_common()]
    assert counts.characters == len(shares) == 5 and counts.words == 4
    for number in range(1, 6):
        assert counts.coverage(number) == pytest.approx(sum(shares[:number]))
        assert counts.characters_for(counts.coverage(number)) == number
        assert counts.characters_for(counts.coverage(number) - 1e-9) <= number
    assert counts.coverage(9) == 1.0 and counts.characters_for(0.0) == 1


def test_of_two_vocabularies_of_one_size_that_of_more_characters_decides(tmp_path: Path) -> None:
    """Few words on one side, many characters, most of them rare, on the other."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefgh", k=5)) for _ in range(400)]
    signs = [chr(0x4E00 + number) for number in range(800)]
    shares = [1 / (4 + number) ** 2 for number in range(800)]
    sides = {
        "my.en": [" ".join(draw.choices(words, k=9)) for _ in range(900)],
        "my.zh": ["".join(draw.choices(signs, shares, k=20)) for _ in range(900)],
    }
    for name, lines in sides.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    recipe, _ = recipe_of([str(tmp_path / name) for name in sides], changes=APART)
    text = recipe.text
    free = text.vocabulary - 3 - 256
    assert text.byte_fallback and 0 < free < _Counts(sides["my.zh"], text).characters
    for lines in sides.values():
        assert _Counts(lines, text).characters_for(text.character_coverage) <= free


def test_rare_characters_are_bytes_before_a_vocabulary_grows(tmp_path: Path) -> None:
    """At most two thirds of it are single characters, while they make up enough of the text."""
    draw = random.Random(0)
    signs = [chr(0x4E00 + number) for number in range(3_000)]
    shares = [1 / (20 + number) ** 1.7 for number in range(3_000)]
    sides = {
        "my.en": [
            " ".join("".join(draw.choices("abcdefgh", k=6)) for _ in range(3)) for _ in range(4_000)
        ],
        "my.zh": ["".join(draw.choices(signs, shares, k=12)) for _ in range(4_000)],
    }
    for name, lines in sides.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    recipe, _ = recipe_of([str(tmp_path / name) for name in sides], changes=APART)
    text, counts = recipe.text, _Counts(sides["my.zh"], recipe.text)
    assert text.vocabulary == 2_000 and counts.characters_for(0.9999) > 2 / 3 * (2_000 - 3 - 256)
    assert 0.98 < text.character_coverage < 0.9999
    # Counted here with what is held out, too.
    assert counts.characters_for(text.character_coverage) < 1.05 * 2 / 3 * (2_000 - 3 - 256)
