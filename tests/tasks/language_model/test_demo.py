"""``dragoman demo --task write``, with a training that is over at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Dragoman

from dragoman.runs.run import RECIPE
from dragoman.tasks.catalogue import Recipe, Run

SHORT = (
    "model.model_dim=32", "model.ffn_dim=32", "model.layers=1", "plan.tokens_per_update=512",
    "training.updates=8", "training.validate_every=4", "evaluation.dev_sentences=4",
)  # fmt: skip


@pytest.mark.slow  # a training, as of the other demos
def test_a_language_model_from_nothing(dragoman: Dragoman, tmp_path: Path) -> None:
    to = tmp_path / "letters"
    to.mkdir()
    Recipe.load("demo-letters").save(to / RECIPE)
    (to / "older.txt").write_text("of the demo that was here before")
    changes = [word for change in SHORT for word in ("--set", change)]
    said = dragoman("demo", "--task", "write", "--to", to, *changes)
    assert said.code == 0, said.err
    assert "synthetic" in said.out and "bits per byte" in said.out
    assert "\n  Das Tier" in said.out and "müde[" in said.out and " bits in all" in said.out
    assert Run.open(to).task.name == "language-model"
    assert (to / "report.html").is_file()
    assert not (to / "older.txt").exists()


def test_what_is_no_demo_is_left_alone(dragoman: Dragoman, tmp_path: Path) -> None:
    said = dragoman("demo", "--task", "poetry", "--to", tmp_path)
    assert said.code == 1 and "choose one of translate" in said.err
    (tmp_path / "mine.txt").write_text("mine")
    said = dragoman("demo", "--task", "write", "--to", tmp_path)
    assert said.code == 1 and "is not a demo" in said.err and (tmp_path / "mine.txt").exists()
