"""``dragoman demo --task detect``, so small that it is over at once."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import Dragoman
from PIL import Image

from dragoman.demo import scenes
from dragoman.demo.corpus import Split
from dragoman.demo.scenes import MOST, SHAPES, SIDE, coverage, draw_demo, write_drawn
from dragoman.forms.boxes import Box, scene_of
from dragoman.sources.picture.coco import read_coco
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.detection.demo import SCENES_PICTURE, sheet
from dragoman.tasks.detection.detector import DetectedPicture, Detection

TINY: dict[Split, int] = {"train": 24, "dev": 4, "test": 6}
SHORT = (
    "model.model_dim=32", "model.ffn_dim=32", "model.encoder_layers=1", "model.decoder_layers=1",
    "source.stem_channels=4", "model.attention.num_heads=2", "training.updates=4",
    "training.validate_every=4", "training.schedule.warmup=2", "training.average_last=0",
    "training.precision=fp32", "evaluation.dev_sentences=4",
)  # fmt: skip


def test_a_run_from_nothing(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way, with a training that learns nothing."""
    monkeypatch.setattr(scenes, "SIZES", TINY)
    monkeypatch.chdir(tmp_path)
    changes = [word for change in SHORT for word in ("--set", change)]
    to, drawn = (tmp_path / "runs" / name for name in ("demo-detect", "demo-detect-scenes"))
    # A demo that was here before, which this one replaces.
    to.mkdir(parents=True)
    Recipe.load("demo-boxes").save(to / "recipe.toml")
    drawn.mkdir()
    (drawn / "NOTICE.txt").touch()
    (drawn / "older.png").touch()
    said = dragoman("demo", "--task", "detect", *changes)
    assert said.code == 0, said.err
    assert "synthetic" in said.out and "AP50" in said.out and "Drawing 34 scenes" in said.out
    assert "Test: scenes that were not in training" in said.out
    assert len(list(drawn.rglob("*.png"))) == 34
    assert "synthetic" in (drawn / "NOTICE.txt").read_text()
    assert Run.open(to).task.called == "detector"
    root = ElementTree.parse(to / SCENES_PICTURE).getroot()
    (image,) = (one for one in root.iter() if one.tag.endswith("image"))
    with Image.open((to / SCENES_PICTURE).with_suffix(".png")) as png:
        assert png.size == (int(image.get("width", "")), int(image.get("height", "")))
    assert (to / "report.html").is_file()
    # What it names next can be done.
    (step,) = re.findall(r"dragoman (detect runs/\S+ runs/\S+/test/0001\.png --show)", said.out)
    assert dragoman(*step.split()).code == 0


def test_what_the_demo_did_not_make_is_left_alone(
    dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenes, "SIZES", TINY)
    (tmp_path / "own-scenes").mkdir()
    (tmp_path / "own-scenes" / "a.png").write_text("mine")
    said = dragoman("demo", "--task", "detect", "--to", tmp_path / "own")
    assert said.code == 1 and "was not created by a demo of scenes" in said.err
    assert (tmp_path / "own-scenes" / "a.png").is_file() and not (tmp_path / "own").exists()
    (tmp_path / "run").mkdir()
    Recipe.load("scenes").save(tmp_path / "run" / "recipe.toml")
    said = dragoman("demo", "--task", "detect", "--to", tmp_path / "run")
    assert said.code == 1 and "is not a demo" in said.err
    assert not (tmp_path / "run-scenes").exists()


def test_no_scene_is_there_twice_and_shapes_lie_apart() -> None:
    parts = draw_demo({"train": 300, "test": 60})
    every = [scene for part in parts.values() for scene in part]
    assert len({scene.pixels.tobytes() for scene in every}) == len(every) == 360
    assert len({tuple(sorted(scene.shapes)) for scene in every}) == 360
    assert {len(scene.shapes) for scene in every} == set(range(1, MOST + 1))
    assert {shape.name for scene in every for shape in scene.shapes} == set(SHAPES)
    again = draw_demo({"train": 300, "test": 60})
    assert all(
        (one.pixels == other.pixels).all()
        for name in parts
        for one, other in zip(parts[name], again[name], strict=True)
    )


def test_a_shape_touches_each_edge_of_its_box_and_nothing_else_is_bright(tmp_path: Path) -> None:
    for name in SHAPES:
        for side in (10, 20):
            filled = coverage(SHAPES[name], side)
            edges = filled[0], filled[-1], filled[:, 0], filled[:, -1]
            assert all(edge.max() > 0.1 for edge in edges), (name, side)
    parts = draw_demo({"test": 20})
    write_drawn(tmp_path / "drawn", parts)
    pairs = list(read_coco(tmp_path / "drawn" / "test.json"))
    assert len(pairs) == 20
    for pair, scene in zip(pairs, parts["test"], strict=True):
        with Image.open(pair.source) as png:
            pixels = np.asarray(png).astype(int)
        assert (pixels == scene.pixels).all()
        boxes = scene_of(pair.target).boxes
        assert [(box.label, *box[1:5]) for box in boxes] == [
            (name, left, top, side, side) for name, left, top, side in scene.shapes
        ]
        outside = np.full(pixels.shape, True)
        for box in boxes:
            rows, columns = (
                slice(int(box.top), int(box.bottom)),
                slice(int(box.left), int(box.right)),
            )
            outside[rows, columns] = False
            assert pixels[rows, columns].max() > np.median(pixels[outside]) + 40
        assert pixels[outside].max() < np.median(pixels[outside]) + 50  # noise alone


def test_boxes_of_a_sheet_lie_where_their_pictures_do(tmp_path: Path) -> None:
    for number in range(3):
        pixels = np.full((SIDE, SIDE), 40 * number, np.uint8)
        pixels[5:9, 20:30] = 200 + number
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    likely_and_not = (0.9, Box("a", 20, 5, 10, 4)), (0.1, Box("a", 0, 0, 9, 9))
    found = [
        DetectedPicture(
            str(tmp_path / f"{number}.png"), SIDE, SIDE,
            tuple(Detection("a", *one) for one in likely_and_not), (), 0.0,
        )
        for number in range(3)
    ]  # fmt: skip
    pixels, shown = sheet(found, (2, 2), 3)
    boxes = [one.box for one in shown]
    assert len(boxes) == 3  # not those that are unlikely
    first, right, below = boxes
    assert (right.top, below.left) == (first.top, first.left)
    for number, box in enumerate(boxes):
        inside = pixels[int(box.top) : int(box.bottom), int(box.left) : int(box.right)]
        assert inside.shape == (12, 30, 3) and (inside == 200 + number).all()
    assert (pixels[-3:, -3:] == 255).all()  # there is no fourth
