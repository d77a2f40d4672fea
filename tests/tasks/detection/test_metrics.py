"""Average precision of boxes: a case counted by hand, and random ones beside pycocotools."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from dragoman.forms.boxes import Box
from dragoman.tasks.detection.metrics import ScoredBox, average_precision


def test_a_case_that_is_counted_by_hand() -> None:
    """Two cats: one is hit by the second surest box, the other by none; the surest is wrong."""
    cats = [Box("cat", 0, 0, 10, 10), Box("cat", 50, 50, 10, 10)]
    found = [
        ScoredBox(Box("cat", 20, 20, 10, 10), 0.9),  # nothing is there
        ScoredBox(Box("cat", 0, 0, 10, 7), 0.8),  # 70 of 100: right up to 0.70
        ScoredBox(Box("dog", 50, 50, 10, 10), 0.7),  # no dog is in the reference
    ]
    result = average_precision([cats], [found])
    # Recall 0.5 is reached at precision 0.5: 51 of 101 points have 0.5, the others 0.
    at_one = 51 / 101 * 0.5
    assert result.scores["ap50"] == pytest.approx(at_one, abs=1e-12)
    assert result.scores["ap"] == pytest.approx(at_one * 5 / 10, abs=1e-12)  # 0.50 to 0.70
    assert set(result.scores) == {"ap50", "ap"} and result.sizes == ("s",)
    assert result.by_label["cat"][2] == result.boxes == 2


def test_nothing_found_and_nothing_there() -> None:
    cat = Box("cat", 0, 0, 10, 10)
    assert average_precision([[cat]], [[]]).scores == {"ap50": 0.0, "ap": 0.0}
    nothing = average_precision([[]], [[ScoredBox(cat, 0.5)]])
    assert nothing.scores == {} and nothing.by_label == {}


def test_a_crowd_is_neither_missed_nor_wrong() -> None:
    cat, crowd = Box("cat", 0, 0, 10, 10), Box("cat", 40, 0, 60, 60, 0.0, True)
    inside = [ScoredBox(Box("cat", 45, 5, 10, 10), 0.9), ScoredBox(Box("cat", 60, 5, 10, 10), 0.8)]
    found = average_precision([[cat, crowd]], [[*inside, ScoredBox(cat, 0.1)]])
    assert found.scores["ap"] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_random_boxes_score_as_pycocotools_has_them(seed: int) -> None:
    pytest.importorskip("pycocotools")
    draw = np.random.default_rng(seed)
    references, found = [], []
    for _ in range(12):
        boxes = [_box(draw, crowd=draw.random() < 0.15) for _ in range(draw.integers(0, 7))]
        near = [_moved(box, draw) for box in boxes for _ in range(draw.integers(0, 3))]
        guesses = [*near, *(_box(draw) for _ in range(draw.integers(0, 5)))]
        if seed == 5:  # more than count in one picture
            guesses += [_box(draw)._replace(label="a") for _ in range(130)]
        # Few different scores: ties are broken by their order.
        found.append([ScoredBox(box, float(draw.integers(1, 20)) / 20) for box in guesses])
        references.append(boxes)
    ours = average_precision(references, found)
    theirs = _pycocotools(references, found)
    for name, value in ours.scores.items():
        assert value == pytest.approx(theirs[name], abs=1e-12), name
    assert {"ap_s", "ap_m", "ap_l"} <= set(ours.scores)


def _box(draw: np.random.Generator, crowd: bool = False) -> Box:
    wide, high = draw.integers(5, [160, 160])
    left, top = draw.integers(0, 200, 2)
    area = float(wide * high * 0.7) if draw.random() < 0.5 else 0.0
    return Box("abc"[draw.integers(3)], left, top, wide, high, area, crowd)


def _moved(box: Box, draw: np.random.Generator) -> Box:
    moved = [max(1.0, side + draw.normal(0, 6)) for side in box[1:5]]
    label = box.label if draw.random() < 0.8 else "a"
    return Box(label, *moved)


def _pycocotools(references: list[list[Box]], found: list[list[ScoredBox]]) -> dict[str, float]:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    number = {label: place for place, label in enumerate("abc", 1)}
    annotations = [
        {
            "id": 0, "image_id": image, "category_id": number[box.label],
            "bbox": [float(side) for side in box[1:5]], "area": float(box.size),
            "iscrowd": int(box.crowd),
        }
        for image, boxes in enumerate(references, 1)
        for box in boxes
    ]  # fmt: skip
    for place, one in enumerate(annotations, 1):
        one["id"] = place
    results = [
        {
            "image_id": image, "category_id": number[one.box.label], "score": one.score,
            "bbox": [float(side) for side in one.box[1:5]],
        }
        for image, guesses in enumerate(found, 1)
        for one in guesses
    ]  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "images": [{"id": image} for image in range(1, len(references) + 1)],
            "annotations": annotations,
            "categories": [{"id": place, "name": label} for label, place in number.items()],
        }
        truth.createIndex()
        truth.dataset["info"] = {}
        judge = COCOeval(truth, truth.loadRes(results), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    ap, ap50, _, small, medium, large = judge.stats[:6]
    return {"ap": ap, "ap50": ap50, "ap_s": small, "ap_m": medium, "ap_l": large}
