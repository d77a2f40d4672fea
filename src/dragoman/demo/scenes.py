"""The demo of detection: scenes of shapes that the program draws, and where each shape is.

Circles, squares, triangles, rings and crosses of any brightness lie on a dark ground with noise,
apart or a little over each other. The box of a shape is the square that it fills. No two scenes are
the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.demo.corpus import Split

SCENES_NOTICE = (
    "The scenes are synthetic: the program draws the shapes in them. High scores only show that "
    "the program works; they say nothing about photographs."
)

SIZES: dict[Split, int] = {"train": 8_000, "dev": 200, "test": 300}
"""The number of scenes in each part."""
SIDE = 32
"""The side of a scene in pixels."""
MOST = 3
"""The most shapes in one scene."""
_SIDES = (7, 14)
"""Pixels of the smallest and of the largest shape."""
_APART = 0.05
"""Intersection over union of two boxes, at most."""
_FINE = 4
"""Points across and down of which a pixel is the mean, so that edges are smooth."""

Bytes = npt.NDArray[np.uint8]
_Plane = npt.NDArray[np.float64]
_Filled = npt.NDArray[np.bool_]
Shape = Callable[[_Plane, _Plane], _Filled]
"""Returns true for places inside a shape, in the square from -1 to 1, y down."""


def _circle(x: _Plane, y: _Plane) -> _Filled:
    return x**2 + y**2 <= 1


SHAPES: dict[str, Shape] = {
    "circle": _circle,
    "cross": lambda x, y: (abs(x) <= 0.35) | (abs(y) <= 0.35),
    "ring": lambda x, y: _circle(x, y) & (x**2 + y**2 >= 0.35),
    "square": lambda x, y: np.full(np.broadcast(x, y).shape, True),
    "triangle": lambda x, y: 2 * abs(x) <= y + 1,
}
"""The shapes that a scene may contain, by name."""


class PlacedShape(NamedTuple):
    """A shape, and the square that it fills, in pixels."""

    name: str
    left: int
    top: int
    side: int


class DrawnScene(NamedTuple):
    """A picture (``SIDE``, ``SIDE``), and what is in it."""

    pixels: Bytes
    shapes: tuple[PlacedShape, ...]


def draw_demo(
    sizes: dict[Split, int] | None = None, seed: int = 1
) -> dict[Split, tuple[DrawnScene, ...]]:
    """The scenes of each part, the same for the same arguments; none is there twice."""
    draw, seen = Random(seed), set[tuple[PlacedShape, ...]]()
    parts: dict[Split, tuple[DrawnScene, ...]] = {}
    for name, count in (SIZES if sizes is None else sizes).items():
        scenes = list[DrawnScene]()
        while len(scenes) < count:
            scene = draw_scene(draw)
            shapes = tuple(sorted(scene.shapes))
            if shapes not in seen:
                seen.add(shapes)
                scenes.append(scene)
        parts[name] = tuple(scenes)
    return parts


def draw_scene(draw: Random) -> DrawnScene:
    """One to ``MOST`` shapes on a ground with noise."""
    noise = np.random.default_rng(draw.getrandbits(32))
    ground = draw.uniform(0, 60)
    pixels = np.full((SIDE, SIDE), ground)
    shapes = list[PlacedShape]()
    wanted = draw.randint(1, MOST)
    while len(shapes) < wanted:
        side = draw.randint(*_SIDES)
        left, top = (draw.randint(0, SIDE - side) for _ in "xy")
        shape = PlacedShape(draw.choice(tuple(SHAPES)), left, top, side)
        if all(_overlap(shape, other) <= _APART for other in shapes):
            shapes.append(shape)
            part = pixels[top : top + side, left : left + side]
            part += (draw.uniform(ground + 70, 255) - part) * coverage(SHAPES[shape.name], side)
    pixels += noise.normal(0, 8, pixels.shape)
    return DrawnScene(np.clip(np.rint(pixels), 0, 255).astype(np.uint8), tuple(shapes))


@cache
def coverage(shape: Shape, side: int) -> _Plane:
    """(side, side) how much of each pixel a shape fills, from 0 to 1."""
    points = (np.arange(side * _FINE) + 0.5) / (side * _FINE) * 2 - 1
    filled = shape(points[None, :], points[:, None])
    shares: _Plane = filled.reshape(side, _FINE, side, _FINE).mean(axis=(1, 3))
    return shares


def write_drawn(folder: Path, parts: dict[Split, tuple[DrawnScene, ...]]) -> None:
    """The scenes as PNG files (with Pillow), and a file in COCO's format for each part."""
    from PIL import Image

    names = tuple(SHAPES)
    for part, scenes in parts.items():
        (folder / part).mkdir(parents=True)
        images, boxes = list[dict[str, Any]](), list[dict[str, Any]]()
        for number, scene in enumerate(scenes, 1):
            file = f"{part}/{number:04}.png"
            Image.fromarray(scene.pixels).save(folder / file, compress_level=1)
            images.append({"id": number, "file_name": file, "width": SIDE, "height": SIDE})
            for name, left, top, side in scene.shapes:
                boxes.append(
                    {
                        "id": len(boxes) + 1, "image_id": number,
                        "category_id": names.index(name) + 1, "bbox": [left, top, side, side],
                        "area": side * side, "iscrowd": 0,
                    }
                )  # fmt: skip
        categories = [{"id": place, "name": name} for place, name in enumerate(names, 1)]
        about = {"images": images, "annotations": boxes, "categories": categories}
        (folder / f"{part}.json").write_text(json.dumps(about), encoding="utf-8")


def _overlap(first: PlacedShape, second: PlacedShape) -> float:
    """Intersection over union of two boxes."""
    wide = min(first.left + first.side, second.left + second.side) - max(first.left, second.left)
    high = min(first.top + first.side, second.top + second.side) - max(first.top, second.top)
    both = max(wide, 0) * max(high, 0)
    return both / (first.side**2 + second.side**2 - both)
