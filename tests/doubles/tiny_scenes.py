"""Pictures with boxes that tests draw themselves, in COCO's format. Not a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIDE = 16


def write_scenes(folder: Path, count: int = 40, seed: int = 0, name: str = "boxes.json") -> Path:
    """Dark pictures of 16 x 16 with one or two rectangles of whole patches of 4 x 4: bright ones
    are called lamp, grey ones stone. -> the JSON file, beside which they are."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    images, boxes = list[dict[str, Any]](), list[dict[str, Any]]()
    for number in range(1, count + 1):
        pixels = np.zeros((SIDE, SIDE), np.uint8)
        for half in range(int(draw.integers(1, 3))):
            wide, high = (4 * int(side) for side in draw.integers(1, 3, 2))
            left = 8 * half + 4 * int(draw.integers(0, 3 - wide // 4))
            top = 4 * int(draw.integers(0, 5 - high // 4))
            label = int(draw.integers(2))
            pixels[top : top + high, left : left + wide] = (255, 110)[label]
            boxes.append(
                {
                    "id": len(boxes) + 1, "image_id": number, "category_id": label + 1,
                    "bbox": [left, top, wide, high], "iscrowd": 0,
                }
            )  # fmt: skip
        file = f"{Path(name).stem}-{number:03}.png"
        pixels[0, 0] = number % 7  # none is the copy of another
        Image.fromarray(pixels).save(folder / file)
        images.append({"id": number, "file_name": file, "width": SIDE, "height": SIDE})
    categories = [{"id": 1, "name": "lamp"}, {"id": 2, "name": "stone"}]
    return write_coco(folder / name, images, boxes, categories)


def write_coco(
    path: Path,
    images: list[dict[str, Any]],
    boxes: list[dict[str, Any]],
    categories: list[dict[str, Any]],
) -> Path:
    about = {"images": images, "annotations": boxes, "categories": categories}
    path.write_text(json.dumps(about), encoding="utf-8")
    return path
