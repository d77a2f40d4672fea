"""Boxes in COCO's JSON: what is read, and one clear line for each mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tiny_scenes import write_scenes

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import corpus_fingerprint, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.boxes import scene_of
from dragoman.sources.picture.coco import read_coco

About = dict[str, Any]


def test_pictures_and_their_boxes_are_read(tmp_path: Path) -> None:
    file = write_scenes(tmp_path, 3)
    about = json.loads(file.read_text())
    for one in (file, tmp_path):  # the file, or the folder that it is in
        pairs = list(read_pairs(CorpusSettings(source=str(one), format="coco")))
        assert [pair.line for pair in pairs] == [1, 2, 3] and all(pair.group for pair in pairs)
        assert pairs[0].source == str(tmp_path / "boxes-001.png")
        read = [box for pair in pairs for box in scene_of(pair.target).boxes]
        assert [list(box[1:5]) for box in read] == [box["bbox"] for box in about["annotations"]]


def test_pictures_lie_where_coco_has_them(tmp_path: Path) -> None:
    write_scenes(tmp_path / "val2017", 2)
    (tmp_path / "annotations").mkdir()
    moved = tmp_path / "annotations" / "instances_val2017.json"
    (tmp_path / "val2017" / "boxes.json").rename(moved)
    assert len(list(read_coco(moved))) == len(list(read_coco(tmp_path))) == 2


def test_the_line_of_boxes_reads_back(tmp_path: Path) -> None:
    file = write_scenes(tmp_path, 1)
    _change(file, lambda about: about["annotations"][0].update(area=7.5, iscrowd=1))
    (pair,) = read_coco(file)
    first = scene_of(pair.target).boxes[0]
    assert (first.area, first.crowd) == (7.5, True)
    assert str(scene_of(pair.target)) == pair.target
    assert first not in scene_of(pair.target).single
    with pytest.raises(DataError, match="not the boxes of a picture"):
        scene_of('{"size": [1, 2], "boxes": [["a", 1]]}')


def test_other_pictures_or_boxes_are_another_corpus(tmp_path: Path) -> None:
    file = write_scenes(tmp_path, 2)
    corpus = CorpusSettings(source=str(file), format="coco")
    first = corpus_fingerprint(corpus)
    Image.fromarray(np.full((16, 16), 9, np.uint8)).save(tmp_path / "boxes-002.png")
    second = corpus_fingerprint(corpus)
    _change(file, lambda about: about["annotations"].pop())
    assert len({first, second, corpus_fingerprint(corpus)}) == 3


def _change(file: Path, change: Callable[[About], object]) -> None:
    about = json.loads(file.read_text())
    change(about)
    file.write_text(json.dumps(about))


def _box(*bbox: float) -> Callable[[About], object]:
    return lambda about: about["annotations"][0].update(bbox=list(bbox))


def _image(number: int, **values: object) -> Callable[[About], object]:
    return lambda about: about["images"][number].update(values)


MISTAKES: dict[str, tuple[Callable[[About], object], str]] = {
    "outside": (_box(10, 10, 9, 3), r"annotation 1 \(boxes-001.png\): .*extends beyond its pic"),
    "below it": (_box(1, 10, 3, 9), "extends beyond its picture of 16 x 16"),
    "left of it": (_box(-4, 0, 9, 3), "extends beyond its picture of 16 x 16"),
    "no area": (_box(1, 1, 0, 3), "has no area"),
    "no numbers": (_box(1, 1, float("nan"), 3), "bbox is not four numbers"),
    "three numbers": (_box(1, 1, 3), "bbox is not four numbers"),
    "a number too large": (
        lambda a: a["annotations"][0].update(bbox=[10**400, 1, 2, 3]),
        "bbox is not",
    ),
    "a side too large": (_image(0, width=10**400), "width is not a number of pixels"),
    "less than is kept": (_box(1, 1, 0.001, 3), "has no area"),
    "no crowd": (
        lambda a: a["annotations"][0].update(iscrowd="0"),
        'iscrowd is "0". Use 0, or 1',
    ),
    "a tab": (
        lambda a: a["categories"][1].update(name="a\tb"),
        r"category 2: 'a\\tb' contains a line break",
    ),
    "no letter": (lambda a: a["categories"][1].update(name="a\ud800"), "another control character"),
    "no such image": (lambda a: a["annotations"][0].update(image_id=99), "no image 99"),
    "no such category": (lambda a: a["annotations"][0].update(category_id=9), "no category 9"),
    "no file name": (
        lambda a: a["images"][0].pop("file_name"),
        "image 1: the entry has no file_name",
    ),
    "missing": (_image(1, file_name="x.png"), "image 2: .*x.png does not exist"),
    "twice": (_image(1, file_name="boxes-001.png"), "is already image 1. List it once"),
    "the same id": (_image(1, id=1), "id 1 is already used by image 1"),
    "another size": (_image(0, width=20), r"16 x 16 pixels.* says 20 x 16"),
    "no categories": (lambda a: a.pop("categories"), "not in COCO's format: .*categories"),
    "two of a name": (lambda a: a["categories"][1].update(name="lamp"), "'lamp' .*listed twice"),
    "no images": (lambda a: a.update(images=[], annotations=[]), "lists no image"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_one_line_with_its_place(name: str, tmp_path: Path) -> None:
    change, told = MISTAKES[name]
    file = write_scenes(tmp_path, 2)
    _change(file, change)
    with pytest.raises(DataError, match=told) as refused:
        list(read_coco(file))
    assert "\n" not in str(refused.value) and str(file) in str(refused.value)


def test_files_that_are_no_boxes_are_refused(tmp_path: Path) -> None:
    for content, told in ((b"[1]", "not in COCO's format"), (b"{", "not JSON"), (b"\xff", "UTF-8")):
        (tmp_path / "x.json").write_bytes(content)
        with pytest.raises(DataError, match=told):
            list(read_coco(tmp_path / "x.json"))
    with pytest.raises(DataError, match="does not exist"):
        list(read_coco(tmp_path / "none.json"))
    (tmp_path / "y.json").write_text("{}")
    with pytest.raises(DataError, match=r"2 JSON files \(x.json, y.json\)\. Give the file"):
        list(read_coco(tmp_path))
