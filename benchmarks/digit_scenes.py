"""Scenes of written digits with a box around each, made of the single ones of MNIST: what the row
of detection in docs/results.md learns from.

    python benchmarks/digit_scenes.py mnist scenes

writes ``scenes/train.json``, ``dev.json`` and ``test.json`` in COCO's format, and the pictures
beside them. Each scene has one to six digits, of 14 to 28 pixels, on a picture of 64 x 64; boxes
are around the ink. Digits may overlap a little. Scenes of training and dev are made of MNIST's
training digits, the last 5,000 of which are dev's alone; scenes of test are made of its test
digits. No two scenes are the same.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

Bytes = npt.NDArray[np.uint8]
Square = tuple[int, int, int, int]
"""Left, top, width, height."""

SIDE = 64
"""Pixels of a scene."""
COUNTS = {"train": 40_000, "dev": 500, "test": 1_000}
"""Scenes of each part."""
MOST = 6
"""Digits of a scene."""
_SIZES = (14, 28)
_OF_DEV = 5_000
_INK = 64
"""Pixels as bright as this are inside the box."""
_OVERLAP = 0.1
"""Of two boxes at most, intersection over union."""
_TRIES = 30


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument(
        "mnist", type=Path, help="folder with train-images-idx3-ubyte.gz and others"
    )
    options.add_argument("to", type=Path, help="a new folder")
    options.add_argument("--scenes", type=int, default=COUNTS["train"], help="of training")
    given = options.parse_args()
    images, labels = read(given.mnist, "train")
    digits = {
        "train": (images[:-_OF_DEV], labels[:-_OF_DEV]),
        "dev": (images[-_OF_DEV:], labels[-_OF_DEV:]),
        "test": read(given.mnist, "t10k"),
    }
    given.to.mkdir(parents=True)
    seen: set[bytes] = set()
    for number, (part, of_part) in enumerate(digits.items()):
        count = given.scenes if part == "train" else COUNTS[part]
        write(given.to, part, count, *of_part, random.Random(number), seen)


def read(folder: Path, part: str) -> tuple[Bytes, Bytes]:
    """Pictures and their labels."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return images, labels


def write(
    to: Path,
    part: str,
    count: int,
    images: Bytes,
    labels: Bytes,
    draw: random.Random,
    seen: set[bytes],
) -> None:
    """A part: its pictures, and their boxes in one file."""
    (to / part).mkdir()
    pictures, boxes = [], list[dict[str, object]]()
    while len(pictures) < count:
        scene, found = composed(images, labels, draw)
        if scene.tobytes() in seen:
            continue
        seen.add(scene.tobytes())
        number = len(pictures) + 1
        name = f"{part}/{number:06}.png"
        Image.fromarray(scene).save(to / name)
        pictures.append({"id": number, "file_name": name, "width": SIDE, "height": SIDE})
        for digit, square in found:
            boxes.append(
                {
                    "id": len(boxes) + 1, "image_id": number, "category_id": digit + 1,
                    "bbox": square, "area": square[2] * square[3], "iscrowd": 0,
                }
            )  # fmt: skip
    about = {
        "images": pictures,
        "annotations": boxes,
        "categories": [{"id": digit + 1, "name": str(digit)} for digit in range(10)],
    }
    (to / f"{part}.json").write_text(json.dumps(about), encoding="utf-8")


def composed(
    images: Bytes, labels: Bytes, draw: random.Random
) -> tuple[Bytes, list[tuple[int, Square]]]:
    """One scene, and its digits with their boxes."""
    scene = np.zeros((SIDE, SIDE), np.uint8)
    found: list[tuple[int, Square]] = []
    for _ in range(draw.randint(1, MOST)):
        chosen = draw.randrange(len(images))
        side = draw.randint(*_SIZES)
        digit = np.asarray(Image.fromarray(images[chosen]).resize((side, side)))
        rows, columns = np.nonzero(digit >= _INK)
        if not len(rows):
            continue
        ink = (int(columns.min()), int(rows.min()))
        wide, high = int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1
        for _ in range(_TRIES):
            left, top = draw.randint(0, SIDE - side), draw.randint(0, SIDE - side)
            square = (left + ink[0], top + ink[1], wide, high)
            if all(overlap(square, other) <= _OVERLAP for _, other in found):
                part = scene[top : top + side, left : left + side]
                np.maximum(part, digit, out=part)
                found.append((int(labels[chosen]), square))
                break
    return scene, found


def overlap(one: Square, other: Square) -> float:
    """Intersection over union."""
    wide = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    high = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    both = max(wide, 0) * max(high, 0)
    return both / (one[2] * one[3] + other[2] * other[3] - both)


if __name__ == "__main__":
    main()
