"""``dragoman demo --task classify-picture``, with a training that is over at once."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Dragoman

from dragoman.demo import shapes
from dragoman.demo.corpus import Split
from dragoman.demo.shapes import SHAPES
from dragoman.forms.form import Pair
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.classification.demo import LOOKED_AT_PICTURE, rollout_sheet

TINY: dict[Split, int] = {"train": 32, "dev": 8, "test": 16}
SHORT = (
    "model.model_dim=16", "model.ffn_dim=16", "model.layers=1", "source.stem_channels=4",
    "model.attention.num_heads=2", "training.updates=2", "training.validate_every=2",
    "training.schedule.warmup=1", "training.average_last=0", "training.precision=fp32",
)  # fmt: skip


def test_a_run_from_nothing(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "SIZES", TINY)
    monkeypatch.chdir(tmp_path)
    changes = [word for change in SHORT for word in ("--set", change)]
    to = tmp_path / "runs" / "demo-classify-picture"
    pictures = tmp_path / "runs" / "demo-classify-picture-pictures"
    # A demo that was here before, which this one replaces.
    to.mkdir(parents=True)
    Recipe.load("demo-pictures").save(to / "recipe.toml")
    pictures.mkdir()
    (pictures / "NOTICE.txt").touch()
    (pictures / "older.png").touch()
    said = dragoman("demo", "--task", "classify-picture", *changes)
    assert said.code == 0, said.err
    assert "synthetic" in said.out and "Drawing 56 pictures" in said.out
    assert "16 pictures whose combinations of shape, pattern and colour were held out" in said.out
    assert "accuracy" in said.out and "black-filled-arrow.png" in said.out
    assert len(list(pictures.rglob("*.png"))) == 56
    assert "synthetic" in (pictures / "NOTICE.txt").read_text()
    root = ElementTree.parse(to / LOOKED_AT_PICTURE).getroot()
    titles = [one.text for one in root.iter() if one.text == "Attention rollout"]
    assert len(titles) == len(SHAPES)
    assert (to / "report.html").is_file()
    # What it names next can be done.
    (step,) = re.findall(r"classify (runs/\S+) (runs/\S+)/test/000\*\.png", said.out)
    one = sorted((tmp_path / step[1] / "test").glob("000*.png"))[0]
    assert dragoman("classify", step[0], one).code == 0
    figure, (told,) = rollout_sheet(Run.open(to), [Pair(1, str(one), "none")])
    assert told.endswith(" %, not none") and len(figure.panels) == 3


def test_what_the_demo_did_not_make_is_left_alone(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "SIZES", TINY)
    (tmp_path / "own-pictures").mkdir()
    (tmp_path / "own-pictures" / "a.png").write_text("mine")
    said = dragoman("demo", "--task", "classify-picture", "--to", tmp_path / "own")
    assert said.code == 1 and "was not created by a demo of pictures" in said.err
    assert (tmp_path / "own-pictures" / "a.png").is_file() and not (tmp_path / "own").exists()
