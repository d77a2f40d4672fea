"""The tags of a task, and what is known of single words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.base.errors import DataError, RunError
from dragoman.tasks.tagging.form import Tags

SENTENCES = [
    (["the", "run", "ends"], ["DT", "NN", "VBZ"]),
    (["they", "run"], ["PRP", "VB"]),
    (["we", "run", "the", "�"], ["PRP", "VB", "DT", "NN"]),
]


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    tags = Tags.learn(SENTENCES)
    tags.save(tmp_path / "tags.txt")
    again = Tags.load(tmp_path / "tags.txt")
    assert again.labels.names == tags.labels.names == ("DT", "NN", "PRP", "VB", "VBZ")
    assert again.counts == tags.counts and again.fingerprint == tags.fingerprint
    words = ["the", "run", "ends", "they", "The", "\ud800", "new"]
    assert [again.knows(word) for word in words] == [True] * 4 + [False] * 3
    assert again.usual(words) == tags.usual(words) == ["DT", "VB", "VBZ", "PRP", "DT", "DT", "DT"]


def test_a_line_of_tags_is_its_values() -> None:
    tags = Tags.learn(SENTENCES)
    (values,) = tags.tokens(["NN  DT VB"])
    assert tags.raw([values]) == ["NN DT VB"] and tags.tokens([""]) == [[]]
    assert tags.numbers(["DT XX"]) == [[0, -1]]


def test_of_equally_frequent_ones_the_first_is_usual() -> None:
    one = Tags.learn([(["a", "a"], ["Y", "X"])])
    other = Tags.learn([(["a", "a"], ["X", "Y"])])
    assert one.usual(["a", "b"]) == other.usual(["a", "b"]) == ["X", "X"]


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ([], "there are none"),
        (["X", "X"], "all have the tag 'X'"),
        ([f"T{n}" for n in range(10_001)], "more than 10,000 different tags"),
        (["X", "Y" * 1_001], "more than 1,000 characters"),
    ],
)
def test_too_few_and_too_many_tags_are_refused(tags: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Tags.learn([(["word"] * len(tags), tags)])


@pytest.mark.parametrize(
    "damaged",
    ["", "X\t1\n", "X\t1\n\n", "X\t1\nY\t2\n\na\t2\n", "X\t1\nX\t2\n\na\t0\n", "X\t1\nY 2\n\n",
     "X\t1\nY\t2\n\n\n", "X\t1\nY\t-2\n\n", "\n" + 1_001 * "X" + "\t1\n"],
)  # fmt: skip
def test_a_damaged_file_is_refused(damaged: str, tmp_path: Path) -> None:
    (tmp_path / "tags.txt").write_text(damaged, encoding="utf-8")
    with pytest.raises(RunError, match="damaged"):
        Tags.load(tmp_path / "tags.txt")
    (tmp_path / "tags.txt").write_bytes(b"\xff\t1\n")
    with pytest.raises(RunError, match="not UTF-8"):
        Tags.load(tmp_path / "tags.txt")
