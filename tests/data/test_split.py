"""Held-out sentences: copies stay together; what training has seen is said."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman.data.split import (
    Overlap,
    SplitSettings,
    deciding_key,
    find_overlaps,
    side_of,
    side_of_pair,
    split_pairs,
)
from dragoman.forms.form import Pair

HALF = SplitSettings(dev=0.3, test=0.3)


@given(st.text())
def test_copies_stay_on_one_side(source: str) -> None:
    side = side_of(source, HALF)
    assert side_of(f"  {source} ", HALF) == side
    assert side_of(source + "!", HALF) == side
    # Held-out sets grow and shrink without sentences crossing from one to the other.
    if side == "test":
        assert side_of(source, SplitSettings(dev=0.1, test=0.4)) == "test"


def test_the_sides_are_a_partition_of_about_the_shares_asked() -> None:
    pairs = [Pair(line, f"sentence number {line}", "x") for line in range(4000)]
    sides = {side: list(split_pairs(pairs, HALF, side)) for side in ("train", "dev", "test")}
    assert sorted(pair for side in sides.values() for pair in side) == pairs
    assert abs(len(sides["dev"]) - 1200) < 120 and abs(len(sides["test"]) - 1200) < 120
    assert side_of("A dog runs", HALF) == side_of("a  DOG runs.", HALF)
    overlap = find_overlaps(sides["train"], {"test": sides["test"]})["test"]
    assert overlap.source == 0 and overlap.both == 0


def test_shares_for_a_corpus() -> None:
    assert SplitSettings.for_pairs(1_000_000) == SplitSettings(dev=0.001, test=0.001)
    assert SplitSettings.for_pairs(100) == SplitSettings(dev=0.05, test=0.05)
    assert SplitSettings.for_pairs(100, test=False) == SplitSettings(dev=0.05)
    assert SplitSettings.for_pairs(39) == SplitSettings()  # a twentieth would be one sentence
    with pytest.raises(ValidationError):
        SplitSettings(dev=0.5, test=0.5)


def test_overlap_is_counted_by_side() -> None:
    train = [Pair(1, "A dog.", "Ein Hund."), Pair(2, "A cat.", "Eine Katze."), Pair(3, "x", "y")]
    test = [
        Pair(1, "new", "neu"),
        Pair(2, "a dog", "ein Hund"),
        Pair(3, "A cat.", "Ein Kater."),
        Pair(4, "A hound.", "Ein Hund."),
        Pair(5, "A dog.", "Eine Katze."),
    ]
    found = find_overlaps(iter(train), {"test": test, "dev": test[:1], "other": test[1:2]})
    overlap = found["test"]
    assert (overlap.pairs, overlap.source, overlap.target, overlap.both) == (5, 3, 3, 1)
    assert [pair.line for pair in overlap.first] == [2, 3, 4]
    words = overlap.summary("test")
    assert words is not None and "source of 3" in words and "lines 2, 3, 4" in words
    assert found["dev"].summary("dev") is None
    assert (found["other"].source, found["other"].both) == (1, 1)
    none_of_both = Overlap(5, 0, 2, 0, 0, overlap.first).summary("dev")
    assert none_of_both and "training also has the target of 2 (lines" in none_of_both
    assert " of 0" not in none_of_both


@pytest.mark.parametrize("texts", [12, 32, 39])
def test_of_a_dozen_passages_some_are_held_out(texts: int) -> None:
    pairs = [Pair(line, "", f"passage number {line}") for line in range(texts)]
    split = SplitSettings.for_pairs(texts)
    split = split.for_few([pair.target for pair in pairs])
    held = {side: list(split_pairs(pairs, split, side)) for side in ("dev", "test")}
    assert [len(some) for some in held.values()] == [texts // 12] * 2
    assert SplitSettings().for_few(["one text"] * texts) == SplitSettings(), "all are copies"
    assert SplitSettings().for_few([pair.target for pair in pairs[:11]]) == SplitSettings()
    assert SplitSettings().for_few([pair.target for pair in pairs], test=False).test == 0


@given(st.integers(40, 400), st.integers(0, 10**6), st.booleans())
def test_of_few_examples_just_the_share_is_held_out(count: int, seed: int, both: bool) -> None:
    """A hash holds out a twentieth on average: of 40 examples nothing in one case of eight."""
    pairs = [Pair(line, f"sentence {seed} {line}", "x") for line in range(count)]
    split = SplitSettings.for_pairs(count, test=both).for_few(map(deciding_key, pairs))
    sides = Counter(side_of_pair(pair, split) for pair in pairs)
    held = round(0.05 * count)
    assert (sides["dev"], sides["test"]) == (held, held * both)


def test_whole_texts_and_too_few_of_them_stay_as_they_are() -> None:
    whole = SplitSettings(dev=0.1, whole_texts=True)
    assert whole.for_few(map(str, range(40))) == whole
    two = SplitSettings(dev=0.05, test=0.05)
    assert two.for_few(["anna", "ben"]) == two, "nothing would be left to train on"


def sections(texts: int, each: int = 8) -> list[Pair]:
    return [
        Pair(line, "", f"section {line} of text {text}", f"text {text}")
        for text in range(texts)
        for line in range(each)
    ]


def test_whole_texts_are_held_out_where_there_are_enough() -> None:
    pairs = sections(60)
    characters = {pair.whole: 1000 for pair in pairs}
    split = SplitSettings(dev=0.05, test=0.05).for_whole(characters)
    sides = {side: list(split_pairs(pairs, split, side)) for side in ("train", "dev", "test")}
    assert sorted(pair for side in sides.values() for pair in side) == sorted(pairs)
    texts = {side: {pair.whole for pair in found} for side, found in sides.items()}
    assert not texts["train"] & texts["test"] and not texts["train"] & texts["dev"]
    assert [len(texts[side]) for side in ("dev", "test")] == [3, 3]
    found = find_overlaps(sides["train"], {"test": sides["test"]})["test"]
    assert found.summary("test") is None
    assert SplitSettings(test=0.05).for_whole(characters).dev == 0


def test_names_that_a_split_takes_for_one_count_as_one() -> None:
    """Each side holds what it should, though every group is written in two ways."""
    names = [f"{name}{number}" for name in ("Anna", "Ben") for number in range(5)]
    groups = dict.fromkeys([*names, *(name.lower() for name in names)], 4)
    split = SplitSettings(dev=0.15, test=0.15).for_whole(groups, most=math.inf)
    sides = Counter(side_of(name, split) for name in groups)
    assert sides == {"train": 12, "dev": 4, "test": 4}


@pytest.mark.parametrize("texts", [1, 2, 6])
def test_of_few_texts_sections_are_held_out_and_it_is_said(texts: int) -> None:
    pairs = sections(texts, each=100)
    settings = SplitSettings(dev=0.05, test=0.05)
    split = settings.for_whole({pair.whole: 1000 for pair in pairs})
    assert split == settings
    test = list(split_pairs(pairs, split, "test"))
    found = find_overlaps(split_pairs(pairs, split, "train"), {"test": test})["test"]
    words = found.summary("test")
    assert test and found.parts == len(test) and words is not None
    assert f"{len(test)} come from a text of which training has other parts" in words


def test_one_long_text_does_not_become_the_test_set() -> None:
    characters = {f"text {n}": 1000 for n in range(60)}
    longest = min(characters, key=lambda name: side_of(name, SplitSettings(test=0.02)) == "train")
    settings = SplitSettings(dev=0.05, test=0.05)
    assert settings.for_whole(characters | {longest: 50_000}) == settings
