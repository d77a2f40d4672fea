"""``dragoman demo --task paint``, so small that it is over at once."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

import pytest
from command_line import Dragoman
from PIL import Image

from dragoman.demo import captioned_shapes
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.painting import verb
from dragoman.tasks.painting.verb import PAINTED_PICTURE

SHORT = (
    "training.updates=2", "training.validate_every=2", "training.schedule.warmup=1",
    "training.precision=fp32", "plan.tokens_per_update=200",
)  # fmt: skip
PAINTER = (
    "model.model_dim=16", "model.ffn_dim=16", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.attention.num_heads=2", "evaluation.dev_sentences=2",
)  # fmt: skip


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = partial(captioned_shapes.draw_shapes, train=4, dev=3, test=3)
    monkeypatch.setattr(captioned_shapes, "draw_shapes", drawn)
    monkeypatch.setattr(verb, "CODES_CHANGES", (*SHORT, "model.model_dim=8"))


def test_a_run_from_nothing(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way, with two trainings that learn nothing."""
    monkeypatch.chdir(tmp_path)
    changes = [word for change in (*SHORT, *PAINTER) for word in ("--set", change)]
    to, drawn = (tmp_path / "runs" / name for name in ("demo-paint", "demo-paint-captions"))
    # A demo that was here before, which this one replaces.
    to.mkdir(parents=True)
    Recipe.load("demo-paint").save(to / "recipe.toml")
    drawn.mkdir()
    (drawn / "NOTICE.txt").touch()
    (drawn / "older.png").touch()
    said = dragoman("demo", "--task", "paint", *changes)
    assert said.code == 0, said.err
    assert "synthetic" in said.out and "Drawing 60 pictures" in said.out
    assert "codebook perplexity" in said.out and "exact pictures" in said.out
    assert len(list(drawn.rglob("*.png"))) == 60
    assert Run.open(to).task.called == "painter" and Run.open(drawn / "codes")
    with Image.open(to / PAINTED_PICTURE) as png:
        assert png.size == (4 * (6 * 32 + 5 * 2), 4 * 32)
    assert (to / "report.html").is_file()
    # What it names next can be done.
    (step,) = re.findall(r"dragoman (paint runs/\S+ .*sample.*)", said.out)
    assert dragoman(*shlex.split(step)).code == 0


def test_what_the_demo_did_not_make_is_left_alone(dragoman: Dragoman, tmp_path: Path) -> None:
    (tmp_path / "own-captions").mkdir()
    (tmp_path / "own-captions" / "a.png").write_text("mine")
    said = dragoman("demo", "--task", "paint", "--to", tmp_path / "own")
    assert said.code == 1 and "was not created by a demo of captions" in said.err
    assert (tmp_path / "own-captions" / "a.png").is_file() and not (tmp_path / "own").exists()
