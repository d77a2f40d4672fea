"""Boxes in a picture are in pixels from the upper left corner, as in COCO.

The boxes of a picture are kept on one line of JSON, after its size::

    {"size": [64, 64], "boxes": [["3", 10, 5, 20, 19]]}

A box is its label, left, top, width and height. Its area may follow, if it is not the product of
both, and 1 for a crowd: a region of several objects, from which nothing is learned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from dragoman.base.errors import DataError


class Box(NamedTuple):
    """A rectangle with a label, in pixels."""

    label: str
    left: float
    top: float
    width: float
    height: float
    area: float = 0.0
    """The area of the object in it, from which COCO tells small from large; 0: that of the box."""
    crowd: bool = False

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """Its left, top, right and bottom edge."""
        return self.left, self.top, self.left + self.width, self.top + self.height

    @property
    def size(self) -> float:
        """The area, as COCO counts it."""
        return self.area or self.width * self.height

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


@dataclass(frozen=True)
class Scene:
    """A picture's size and the boxes in it."""

    width: float
    height: float
    boxes: tuple[Box, ...]

    @property
    def single(self) -> tuple[Box, ...]:
        """The boxes that are no crowds."""
        return tuple(box for box in self.boxes if not box.crowd)

    def __str__(self) -> str:
        about = {"size": [_short(self.width), _short(self.height)]}
        return json.dumps(
            about | {"boxes": [_fields(box) for box in self.boxes]}, ensure_ascii=False
        )


def scene_of(raw: str) -> Scene:
    """Read a scene from its ``str``. Errors: ``DataError`` for another text."""
    try:
        about = json.loads(raw)
        width, height = about["size"]
        boxes = tuple(map(_box, about["boxes"]))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(f"this text is not the boxes of a picture: {raw[:60]!r}") from error
    return Scene(width, height, boxes)


def _box(fields: list[Any]) -> Box:
    label, left, top, width, height, *rest = fields
    area, crowd = [*rest, 0, 0][:2]
    sides = float(left), float(top), float(width), float(height)
    return Box(str(label), *sides, float(area), bool(crowd))


def _fields(box: Box) -> list[object]:
    shown = [box.label, *(_short(number) for number in box[1:5])]
    if box.area or box.crowd:
        shown.append(_short(box.area))
    return [*shown, 1] if box.crowd else shown


def _short(number: float) -> float:
    """Return a whole number without its point, others to a hundredth of a pixel."""
    return int(number) if number == int(number) else round(number, 2)
