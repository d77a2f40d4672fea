"""Labelled examples whose casing and tokens say nothing of where they are from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import sentence_sources


def word(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def test_casing_and_tokens_are_made_equal() -> None:
    raw = 'He didn\'t see "Sir", in 1,000 days!'
    tokenised = "he didn ' t see `` sir '' , in 1,000 days !"
    assert sentence_sources.plain(raw) == sentence_sources.plain(tokenised)
    assert sentence_sources.plain(raw) == "he didn t see sir in days"


def test_parts_are_blocks_of_a_file_and_share_no_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = [f"This is sentence {word(n)} of {count}." for n, count in enumerate("ab" * 1000)]
    (tmp_path / "raw.txt").write_text("\n".join([*sentences, *sentences[:300], "Too short."]))
    (tmp_path / "other.tok.txt").write_text("\n".join(f"and {one.lower()}" for one in sentences))
    files = [str(tmp_path / name) for name in ("raw.txt", "other.tok.txt")]
    monkeypatch.setattr(sys, "argv", ["", *files, "--to", str(tmp_path / "out")])
    sentence_sources.main()
    rows = {
        path.stem: [tuple(line.split("\t")) for line in path.read_text().splitlines()]
        for path in (tmp_path / "out").iterdir()
    }
    assert {name: len(found) for name, found in rows.items()} == {
        "train": 3200, "dev": 400, "test": 400, "train-100": 100, "train-1000": 1000
    }  # fmt: skip
    every = [text for part in ("train", "dev", "test") for text, _ in rows[part]]
    assert len(set(every)) == len(every)
    assert {label for _, label in rows["train-100"]} == {"raw", "other"}
    tests = {text for text, label in rows["test"] if label == "raw"}
    assert tests == {
        sentence_sources.plain(one) for one in [*sentences[:100], *sentences[1000:1100]]
    }
    assert "train: 3,200 (other 1,600, raw 1,600)" in capsys.readouterr().out
