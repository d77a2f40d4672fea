"""Detection from files to boxes: a toy that learns in seconds, and what it says of pictures."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Dragoman
from PIL import Image
from recipe_of_files import recipe_of
from tiny_scenes import write_scenes

from dragoman.base.errors import DataError, DragomanError, RecipeError, RunError
from dragoman.forms.boxes import PER_BOX, Box, BoxSymbols, Read, Scene, scene_of
from dragoman.sources.picture.coco import read_coco
from dragoman.tasks.catalogue import Run
from dragoman.tasks.detection.detector import Detector
from dragoman.tasks.detection.evaluation import DetectionEvaluation, DetectionValidation
from dragoman.tasks.detection.learning import IGNORED, boxes_batch, with_noise
from dragoman.tasks.detection.learning import objective_of as learned_by
from dragoman.tasks.training import train
from dragoman.tasks.transcription.transcriber import Transcriber

SMALL = (
    "model.model_dim=64", "model.ffn_dim=128", "model.attention.num_heads=4",
    "model.encoder_layers=2", "model.decoder_layers=2", "model.dropout=0",
    "plan.tokens_per_update=512", "training.updates=240", "training.validate_every=240",
    "training.schedule.peak=4e-3", "training.schedule.warmup=30", "training.average_last=0",
    "training.precision=fp32", "source.patch=4", "model.positions.maximum=32",
)  # fmt: skip
SYMBOLS = BoxSymbols(["cat", "dog"], bins=64, most=4, read=Read(64, 64))


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned to find rectangles."""
    folder = tmp_path_factory.mktemp("boxes")
    files = [str(write_scenes(folder / part, count, seed)) for part, count, seed in (
        ("train", 400, 1), ("dev", 30, 2), ("test", 30, 3))]  # fmt: skip
    recipe, _ = recipe_of(
        files[:1], task="detection", dev=files[1:2], test=files[2:], changes=SMALL
    )
    train(recipe, folder / "run", say=lambda _: None, display=False, measure=False)
    return folder


@pytest.mark.system
def test_a_toy_is_learned_in_seconds(learned: Path) -> None:
    report = DetectionEvaluation()(Run.open(learned / "run"))
    assert report.scores["ap50"] > 0.3
    assert "All boxes are small" in report.table() and "lamp" in report.table()
    assert json.loads((learned / "run" / "scores.json").read_text())["scores"]["ap50"]
    again = DetectionEvaluation()(
        Run.open(learned / "run"), [learned / "test"]
    )  # the folder of the file
    assert again.scores == report.scores


@pytest.mark.system
def test_validation_is_the_mean_over_all_symbols(learned: Path) -> None:
    run = Run.open(learned / "run")
    pairs = list(read_coco(learned / "dev" / "boxes.json"))
    recipe = run.recipe.change(["evaluation.dev_sentences=1"])
    validation = DetectionValidation(run.model(), recipe, run.forms, pairs, torch.device("cpu"))
    with torch.no_grad():
        found = validation(1).scores
        sums = [learned_by(run.model(), 0.0)(run.model(), batch) for batch in validation.batches]
    mean = sum(float(one.nll) for one in sums) / sum(one.tokens for one in sums)
    assert found["loss"] == pytest.approx(mean) and mean > 0


@pytest.mark.system
def test_categories_that_training_has_not_are_told(learned: Path) -> None:
    run = Run.open(learned / "run")
    pairs = list(read_coco(learned / "dev" / "boxes.json"))[:3]
    assert run.task.check_held(run.recipe, {"dev": pairs}, run.forms) == []
    scene = scene_of(pairs[1].target)
    strange = Scene(scene.width, scene.height, (scene.boxes[0]._replace(label="comet"),))
    pairs[1] = pairs[1]._replace(target=str(strange))
    (told,) = run.task.check_held(run.recipe, {"dev": pairs}, run.forms)
    assert "'comet' is a category of dev that is not in training" in told


def test_a_detector_finds_what_is_there(learned: Path) -> None:
    detector = Detector(Run.open(learned / "run"))
    right = wanted = 0
    for pair in read_coco(learned / "test" / "boxes.json"):
        found = detector(pair.source, threshold=0.2)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        true = scene_of(pair.target).boxes
        wanted += len(true)
        right += sum(
            any(_near(box, one.box) and one.label == box.label for one in found) for box in true
        )
    assert right > 0.3 * wanted
    assert len(detector(pair.source, threshold=0)) == detector.run.recipe.boxes.most


def _near(one: Box, other: Box) -> bool:
    return all(abs(a - b) <= 4 for a, b in zip(one[1:5], other[1:5], strict=True))


def test_boxes_of_nothing_fill_up_what_is_learned() -> None:
    scene = Scene(64, 64, (Box("dog", 3, 5, 20, 7), Box("cat", 30, 30, 10, 10)))
    tokens = np.array(SYMBOLS.encode(scene), np.int32)
    orders = set()
    for seed in range(40):
        read, predicted = with_noise(tokens, SYMBOLS, 0.2, np.random.default_rng(seed))
        assert len(read) == len(predicted) == PER_BOX * SYMBOLS.most + 1
        assert read[0] == SYMBOLS.bos and predicted[-1] == IGNORED
        true = predicted[: 2 * PER_BOX]
        assert (read[1 : 2 * PER_BOX + 1] == true).all()
        assert sorted(true.tolist()) == sorted(tokens.tolist())
        orders.add(tuple(true.tolist()))
        nothing = predicted[2 * PER_BOX : -1].reshape(-1, PER_BOX)
        assert (nothing[:, :4] == IGNORED).all() and (nothing[:, 4] == SYMBOLS.nothing).all()
        boxes = SYMBOLS.decode(read[1:].tolist(), 64, 64)
        assert len(boxes) == SYMBOLS.most and all(box.width > 0 < box.height for box in boxes)
    assert len(orders) == 2
    empty, _ = with_noise(np.empty(0, np.int32), SYMBOLS, 0.2, np.random.default_rng(0))
    assert len(empty) == PER_BOX * SYMBOLS.most + 1


def test_the_order_is_keyed_by_seed_update_and_example(learned: Path) -> None:
    run = Run.open(learned / "run")
    pairs = list(read_coco(learned / "train" / "boxes.json"))[:4]
    sources = run.source.encode([pair.source for pair in pairs])
    targets = run.target.encode([pair.target for pair in pairs])

    def made(update: int, numbers: list[int]) -> list[list[int]]:
        batch = boxes_batch(
            [sources[n] for n in numbers], [targets[n] for n in numbers], run.recipe,
            run.forms.boxes.symbols, update, numbers,
        )  # fmt: skip
        return batch.target_in.values.reshape(len(numbers), -1).tolist()

    first = made(1, [0, 1, 2, 3])
    assert made(1, [3, 1]) == [first[3], first[1]]
    assert made(2, [0, 1, 2, 3]) != first


# ---- the verb


def test_the_verb_writes_text_json_and_coco(learned: Path, dragoman: Dragoman) -> None:
    folder, run = learned / "test", learned / "run"
    picture = folder / "boxes-001.png"
    text = dragoman("detect", run, picture, "--threshold", "0.2").out
    name, label, score, *edges = text.splitlines()[0].split("\t")
    assert name == str(picture) and label in ("lamp", "stone") and 0.2 <= float(score) <= 1
    assert len(edges) == 4
    said = dragoman("detect", run, picture, "--format", "json", "--threshold", "0.2").out
    (first, *_) = json.loads(said)
    assert set(first) == {"score", "label", "box"}
    assert set(first["box"]) == {"xmin", "ymin", "xmax", "ymax"}
    assert first["label"] == label and first["box"]["xmin"] == round(float(edges[0]))
    to = learned / "test" / "found" / "found.json"
    to.parent.mkdir()
    assert not dragoman("detect", run, folder, "--format", "coco", "--to", to).code
    about = json.loads(to.read_text())
    assert len(about["images"]) == 30 and about["annotations"][0]["score"] >= 0.5
    assert len(list(read_coco(to))) == 30  # it is COCO's format: it reads back
    by_name = dragoman("detect", run, "--threshold", "0.2", stdin=f"{picture}\n".encode())
    assert by_name.out == text


def test_a_name_that_is_not_utf8_is_read_back(
    learned: Path, tmp_path: Path, dragoman: Dragoman
) -> None:
    picture = tmp_path / os.fsdecode(b"b\xff.png")
    try:
        shutil.copy(learned / "test" / "boxes-001.png", picture)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    to = tmp_path / "found.json"
    assert not dragoman("detect", learned / "run", picture, "--format", "coco", "--to", to).code
    assert [pair.source for pair in read_coco(to)] == [str(picture)]


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_boxes_are_drawn_over_pictures(
    kind: str, learned: Path, tmp_path: Path, dragoman: Dragoman
) -> None:
    drawn = tmp_path / "drawn"
    dragoman("detect", learned / "run", learned / "test" / "boxes-001.png", "--draw", drawn,
             "--draw-as", kind, "--threshold", 0)  # fmt: skip
    content = (drawn / f"boxes-001.png.{kind}").read_bytes()
    if kind == "svg":
        assert content.count(b"<rect") >= 2 and b"data:image/png" in content
    else:
        assert content.startswith(b"\x89PNG")


def test_boxes_are_drawn_in_the_terminal(learned: Path, dragoman: Dragoman) -> None:
    picture = learned / "test" / "boxes-001.png"
    said = dragoman("detect", learned / "run", picture, "--show", "--threshold", 0)
    assert "┌" in said.err and "┘" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("none.png",), "does not exist"),
        (("--threshold", 2, "x.png"), "use a score between 0 and 1"),
        (("-",), "pictures cannot be read from standard input"),
    ],
)
def test_the_verb_tells_mistakes_in_one_line(
    words: tuple[object, ...], told: str, learned: Path, dragoman: Dragoman
) -> None:
    said = dragoman("detect", learned / "run", *words)
    assert said.code == 1 and told in said.err and not said.out


def test_two_pictures_of_one_name_are_not_drawn_over_each_other(
    learned: Path, tmp_path: Path, dragoman: Dragoman
) -> None:
    pictures = [learned / part / "boxes-001.png" for part in ("train", "test")]
    said = dragoman("detect", learned / "run", *pictures, "--draw", tmp_path / "drawn")
    assert said.code == 1 and "two pictures are called boxes-001.png" in said.err
    assert not (tmp_path / "drawn").exists()


# ---- what is refused


def test_mistakes_are_told_in_one_line(learned: Path, tmp_path: Path) -> None:
    one = write_scenes(tmp_path / "one", 4)
    about = json.loads(one.read_text())
    for box in about["annotations"]:
        box["category_id"] = 1
    one.write_text(json.dumps(about))
    whole = {**about, "annotations": [{**about["annotations"][0], "image_id": 1.0}]}
    (tmp_path / "one" / "float.json").write_text(json.dumps(whole))
    with pytest.raises(DataError, match=r"annotation 1: image_id is 1\.0. Write a whole number"):
        list(read_coco(tmp_path / "one" / "float.json"))
    (tmp_path / "one" / "float.json").write_text(json.dumps({**about, "annotations": []}))
    report = DetectionEvaluation()(Run.open(learned / "run"), [tmp_path / "one" / "float.json"])
    assert "These pictures have no boxes" in report.table() and report.scores == {}
    with pytest.raises(DataError, match=r"one category, 'lamp'. Give pictures with two"):
        recipe_of([str(one)], task="detection")
    (tmp_path / "words.txt").write_text("a\n")
    with pytest.raises(RecipeError, match="boxes in COCO's format: give one JSON file"):
        recipe_of([str(tmp_path / "words.txt")], task="detection")
    with pytest.raises(RecipeError, match="--texts works only with --task language-model"):
        recipe_of([str(one)], task="detection", texts="file")
    with pytest.raises(DragomanError, match=r"boxes\.most = 9 takes 46 symbols"):
        recipe_of(
            [str(learned / "train" / "boxes.json")],
            task="detection",
            changes=(*SMALL, "boxes.most=9"),
        )
    with pytest.raises(RunError, match="is a detector"):
        Transcriber(Run.open(learned / "run"))
    with pytest.raises(DataError, match="does not exist"):
        Detector(Run.open(learned / "run"))(tmp_path / "none.png")


def test_more_boxes_than_are_written_are_refused(learned: Path, tmp_path: Path) -> None:
    recipe, _ = recipe_of(
        [str(learned / "train" / "boxes.json")], task="detection", changes=(*SMALL, "boxes.most=1")
    )
    with pytest.raises(DataError, match=r"has 2 boxes.* Set boxes\.most=2"):
        train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    assert not (tmp_path / "run").exists()


def test_a_picture_may_have_any_size(learned: Path, tmp_path: Path) -> None:
    Image.new("RGB", (60, 33)).save(tmp_path / "wide.png")
    detector = Detector(Run.open(learned / "run"))
    found = detector(tmp_path / "wide.png", threshold=0)
    # Read is its middle square.
    assert all(13 <= one.box.left < one.box.right <= 47 for one in found)
