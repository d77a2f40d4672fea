"""COCO keeps the boxes of pictures in one JSON file with images, annotations and categories.

    {"images": [{"id": 1, "file_name": "a.png", "width": 64, "height": 64}],
     "categories": [{"id": 3, "name": "three"}],
     "annotations": [{"image_id": 1, "category_id": 3, "bbox": [10, 5, 20, 19], "iscrowd": 0}]}

Pictures are in the folder of the file, in its subfolder ``images``, or as in COCO's own download:
``annotations/instances_val2017.json`` next to ``val2017/``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from dragoman.base.errors import DataError
from dragoman.base.wording import plural, shorten
from dragoman.forms.boxes import Box, Scene
from dragoman.forms.form import Pair
from dragoman.sources.picture.picture_file import picture_size
from dragoman.sources.shared.files import check_name, reading, unusable, version_of

_EDGE = 1.0
"""A box may exceed its picture by this many pixels, because tools round differently."""
_LARGEST = 1e15
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""The characters that a line of a table, and so a label, cannot contain."""
_NEEDED = ("images", "annotations", "categories")


def is_coco(path: Path) -> bool:
    """Return True for a JSON file, or a folder with one, judged only by its name."""
    return path.suffix.lower() == ".json" or (path.is_dir() and bool(_files_in(path)))


def annotations_in(path: Path) -> Path:
    """Return the JSON file, or the only one of a folder. Errors: ``DataError``."""
    if not path.is_dir():
        return path
    files = _files_in(path)
    if len(files) != 1:
        names = ", ".join(str(file.relative_to(path)) for file in files[:4])
        raise DataError(
            f"{path} has {plural(len(files), 'JSON file')}{f' ({names})' if files else ''}. Give "
            "the file with the boxes, in COCO's format"
        )
    return files[0]


def read_coco(path: Path) -> Iterator[Pair]:
    """Yield a pair for each picture: its file, and its boxes on one line (``forms/boxes.py``);
    its line is its number among the images, from 1.

    Errors: ``DataError`` with file, place and remedy, before the first pair.
    """
    file = annotations_in(path)
    yield from _pairs(file, *version_of(file))


@lru_cache(maxsize=2)
def _pairs(file: Path, changed: int, size: int) -> list[Pair]:
    """``changed`` and ``size`` keep a replaced file from being found in the cache. A training
    needs its pairs several times, and reads each picture's header for them."""
    about = _read(file)
    labels = _labels(file, about["categories"])
    images = [_image(file, number, entry) for number, entry in enumerate(about["images"], 1)]
    numbers = _numbers(file, images)
    boxes: list[list[Box]] = [[] for _ in images]
    for place, entry in enumerate(about["annotations"], 1):
        at = f"{file}, annotation {place}"
        number = numbers.get(_key(entry, "image_id", at))
        if number is None:
            raise DataError(
                f"{at}: there is no image {entry['image_id']!r}. Add it or remove the box"
            )
        boxes[number].append(_box(entry, at, labels, images[number]))
    if not images:
        raise DataError(f"{file} lists no image")
    folders, seen = _folders(file), dict[str, int]()
    pairs = []
    for number, (image, own_boxes) in enumerate(zip(images, boxes, strict=True), 1):
        at = f"{file}, image {number}"
        picture = _picture(at, image["file_name"], folders)
        name = os.path.abspath(picture)
        if name in seen:
            raise DataError(f"{at}: {picture} is already image {seen[name]}. List it once")
        seen[name] = number
        height, width = picture_size(picture)
        if (width, height) != (image["width"], image["height"]):
            raise DataError(
                f"{at}: {picture} is {width} x {height} pixels (width, height) after rotation, "
                f"but the file says {image['width']:g} x {image['height']:g}. Correct it, or "
                "boxes will be misplaced"
            )
        pairs.append(Pair(number, str(picture), str(Scene(width, height, tuple(own_boxes)))))
    return pairs


def _files_in(folder: Path) -> list[Path]:
    return sorted(
        path
        for inside in (folder, folder / "annotations")
        for path in inside.glob("*.json")
        if not path.name.startswith(".") and path.is_file()
    )


def _read(file: Path) -> dict[str, Any]:
    with reading(file):
        content = file.read_bytes()
    try:
        about = json.loads(content)
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not JSON: {shorten(str(error), 80)}") from error
    missing = [name for name in _NEEDED if not _is_list(about, name)]
    if missing:
        raise DataError(
            f"{file} is not in COCO's format: it has no list of {' and of '.join(missing)}. A "
            "file of boxes has lists of images, annotations and categories"
        )
    sections: dict[str, Any] = about
    return sections


def _is_list(about: object, name: str) -> bool:
    entries = about.get(name) if isinstance(about, dict) else None
    return isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)


def _key(entry: dict[str, Any], name: str, at: str) -> Any:
    value = entry.get(name)
    if not isinstance(value, int | str) or isinstance(value, bool):
        shown = shorten(json.dumps(value), 40)
        raise DataError(f"{at}: {name} is {shown}. Write a whole number")
    return value


def _labels(file: Path, categories: list[dict[str, Any]]) -> dict[Any, str]:
    labels: dict[Any, str] = {}
    for place, category in enumerate(categories, 1):
        at = f"{file}, category {place}"
        number, name = _key(category, "id", at), category.get("name")
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"{at}: the entry has no name")
        if _CONTROL.search(name.strip()):
            raise DataError(
                f"{at}: {name.strip()!r} contains a line break, a tab or another control "
                "character. Rename it"
            )
        if number in labels or name.strip() in labels.values():
            raise DataError(f"{at}: {name.strip()!r} (id {number}) is listed twice")
        labels[number] = name.strip()
    return labels


def _image(file: Path, number: int, image: dict[str, Any]) -> dict[str, Any]:
    at = f"{file}, image {number}"
    _key(image, "id", at)
    if not isinstance(image.get("file_name"), str) or not image["file_name"].strip():
        raise DataError(f"{at}: the entry has no file_name")
    for side in ("width", "height"):
        if not _is_number(image.get(side)) or image[side] < 1:
            raise DataError(f"{at} ({image['file_name']}): {side} is not a number of pixels")
    return image


def _numbers(file: Path, images: list[dict[str, Any]]) -> dict[Any, int]:
    numbers: dict[Any, int] = {}
    for number, image in enumerate(images):
        if image["id"] in numbers:
            raise DataError(
                f"{file}, image {number + 1}: id {image['id']!r} is already used by image "
                f"{numbers[image['id']] + 1}. Give each image its own id"
            )
        numbers[image["id"]] = number
    return numbers


def _box(box: dict[str, Any], at: str, labels: dict[Any, str], image: dict[str, Any]) -> Box:
    at = f"{at} ({image['file_name']})"
    label, bbox = labels.get(_key(box, "category_id", at)), box.get("bbox")
    if label is None:
        raise DataError(f"{at}: there is no category {box['category_id']!r}. Add it to categories")
    if not isinstance(bbox, list) or len(bbox) != 4 or not all(map(_is_number, bbox)):
        raise DataError(f"{at}: bbox is not four numbers: left, top, width, height")
    left, top, width, height = map(float, bbox)
    shown = ", ".join(f"{number:g}" for number in bbox)
    if min(round(width, 2), round(height, 2)) <= 0:  # as boxes are kept
        raise DataError(
            f"{at}: the box [{shown}] has no area: its third and fourth numbers, width and "
            "height, must be more than 0. Correct or remove it"
        )
    if (
        min(left, top) < -_EDGE
        or left + width > image["width"] + _EDGE
        or top + height > image["height"] + _EDGE
    ):
        raise DataError(
            f"{at}: the box [{shown}] extends beyond its picture of {image['width']:g} x "
            f"{image['height']:g} pixels. A box is left, top, width, height. Correct or remove it"
        )
    crowd = box.get("iscrowd") or 0
    if crowd not in (0, 1):
        raise DataError(
            f"{at}: iscrowd is {shorten(json.dumps(crowd), 40)}. Use 0, or 1 for a region with "
            "several objects"
        )
    area, product = box.get("area"), width * height
    own = float(area) if _is_number(area) and area > 0 and area != product else 0.0
    return Box(label, left, top, width, height, own, bool(crowd))


def _is_number(value: object) -> TypeGuard[float]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return -_LARGEST <= value <= _LARGEST  # no integer that is too large for a float


def _folders(file: Path) -> list[Path]:
    above = file.parent
    own = file.stem.removeprefix("instances_")
    return [above, above / "images", above.parent / own, above.parent / "images", above.parent]


def _picture(at: str, name: str, folders: list[Path]) -> Path:
    for folder in folders:
        path = check_name(folder / name, at)
        try:
            if path.is_file():
                return path
        except (OSError, ValueError) as error:
            raise DataError(f"{at}: {unusable(path, error)}") from error
    raise DataError(
        f"{at}: {folders[0] / name} does not exist. Put the pictures next to the file, or into a "
        "folder images next to it"
    )
