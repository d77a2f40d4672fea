"""``dragoman evaluate --robust``: the scores are those of a test set with noise."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Dragoman

from dragoman.data.hashing import torch_seed
from dragoman.sources.augment import NoiseSettings, with_noise

SOURCES = ["The dog sleeps.", "The man eats a big apple.", "A woman reads the old book."]
TARGETS = ["Der Hund schläft.", "Der Mann isst einen Apfel.", "Eine Frau liest das alte Buch."]


def test_the_scores_are_those_of_sources_with_noise(
    dragoman: Dragoman, tiny_run: Path, tmp_path: Path
) -> None:
    def evaluate(sources: list[str], *options: str) -> dict[str, object]:
        (tmp_path / "a.en").write_text("\n".join(sources) + "\n", encoding="utf-8")
        (tmp_path / "a.de").write_text("\n".join(TARGETS) + "\n", encoding="utf-8")
        files = (tmp_path / "a.en", tmp_path / "a.de")
        measured = dragoman("evaluate", tiny_run, *files, "--beam", "1", *options, "--json")
        assert measured.code == 0, measured.err
        return dict(json.loads(measured.out))

    rows = {row["noise"]: row for row in evaluate(SOURCES, "--robust")["noise"]}
    assert {"lower case", "no punctuation", "typos in 20 % of the words"} <= set(rows)
    assert "no accents" not in rows  # these sources have none
    for name, settings in (
        ("lower case", NoiseSettings(case=1, texts=1)),
        ("no punctuation", NoiseSettings(punctuation=1, texts=1)),
        ("typos in 20 % of the words", NoiseSettings(typos=0.2, texts=1)),
    ):
        noisy = [with_noise(s, settings, torch_seed(0, n)) for n, s in enumerate(SOURCES)]
        plain = evaluate(noisy)["scores"]
        assert rows[name]["bleu"] == plain["BLEU"]["value"]
        assert rows[name]["chrf"] == plain["chrF"]["value"]
        assert rows[name]["changed"] == sum(map(str.__ne__, noisy, SOURCES)) / 3
    table = dragoman("evaluate", tiny_run, tmp_path / "a.en", tmp_path / "a.de", "--robust")
    assert "noise in the source" in table.out and "lower case" in table.out
