"""Pictures of one or two shapes, and what they show in words: what the demo of painting learns.

    a small red circle above a large blue square
    a large blue square below a small red circle

A picture follows from its words: both of these are of the same picture. What is held out for dev
and test is therefore whole pictures, with all their captions, before anything is learned of them.
All sizes, colours, shapes and relations occur in training, and so does each shape by itself; what
is new in a test is the combination.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.demo.corpus import Split
from dragoman.demo.scenes import SHAPES as INSIDE
from dragoman.demo.scenes import coverage

CAPTIONED_NOTICE = (
    "The pictures and their captions are synthetic: the program draws shapes and describes "
    "them. High scores only show that the program works; they say nothing about photographs."
)

SIDE = 32
"""Pixels of a picture's height and width."""
SHAPES = ("circle", "square", "triangle", "cross")
SIZES = {"small": 4, "large": 7}
"""Half of a shape's height and width, in pixels."""
COLOURS = {
    "red": (214, 40, 40), "green": (42, 157, 72), "blue": (38, 84, 196),
    "yellow": (240, 190, 30), "purple": (130, 50, 160),
}  # fmt: skip
RELATIONS = {"above": "below", "left of": "right of"}
"""The relation of the first of two shapes to the second -> the relation of the second to the
first."""
_PAPER = 246
_INSIDE = {**INSIDE, "cross": lambda x, y: (abs(x) <= 1 / 3) | (abs(y) <= 1 / 3)}
"""The shapes of the scenes, with a thinner cross."""


class Thing(NamedTuple):
    """A shape with its size and its colour."""

    size: str
    colour: str
    shape: str

    def __str__(self) -> str:
        return f"a {self.size} {self.colour} {self.shape}"


@dataclass(frozen=True)
class CaptionedDrawing:
    """The content of a picture: a shape, or two of which the first is above or left of the
    second."""

    things: tuple[Thing, ...]
    relation: str = ""

    @property
    def captions(self) -> tuple[str, ...]:
        """All that it can be called."""
        if len(self.things) == 1:
            return (str(self.things[0]),)
        first, second = self.things
        return (
            f"{first} {self.relation} {second}",
            f"{second} {RELATIONS[self.relation]} {first}",
        )

    def pixels(self) -> npt.NDArray[np.uint8]:
        """Draw the picture on paper. Shape (32, 32, 3)."""
        middle, quarter = SIDE // 2, SIDE // 4
        if len(self.things) == 1:
            places = [(middle, middle)]
        elif self.relation == "above":
            places = [(quarter, middle), (SIDE - quarter, middle)]
        else:
            places = [(middle, quarter), (middle, SIDE - quarter)]
        picture = np.full((SIDE, SIDE, 3), _PAPER, np.float64)
        for thing, (down, across) in zip(self.things, places, strict=True):
            half = SIZES[thing.size]
            part = picture[down - half : down + half, across - half : across + half]
            cover = coverage(_INSIDE[thing.shape], 2 * half)[..., None]
            part += cover * (np.array(COLOURS[thing.colour]) - part)
        return np.rint(picture).astype(np.uint8)


class Example(NamedTuple):
    """A caption and what it is of."""

    caption: str
    drawing: CaptionedDrawing


@cache
def draw_shapes(
    train: int | None = None, dev: int = 160, test: int = 160, seed: int = 1
) -> dict[Split, tuple[Example, ...]]:
    """A corpus with so many pictures of two shapes in each part; ``train`` None: all that are left.
    Pictures of one shape stand in training, and a picture has two captions in each part."""
    pairs = [
        CaptionedDrawing((first, second), relation)
        for first, second in product(things(), repeat=2)
        for relation in RELATIONS
    ]
    random.Random(seed).shuffle(pairs)
    held = dev + test
    learned = [CaptionedDrawing((thing,)) for thing in things()]
    learned += pairs[held:] if train is None else pairs[held : held + train]
    parts: dict[Split, list[CaptionedDrawing]] = {
        "train": learned, "dev": pairs[:dev], "test": pairs[dev:held],
    }  # fmt: skip
    return {name: tuple(_examples(drawings)) for name, drawings in parts.items()}


def write_shapes(
    folder: Path,
    parts: dict[Split, tuple[Example, ...]],
    encoded: Callable[[npt.NDArray[np.uint8]], bytes],
) -> None:
    """The pictures as PNG files, and a list of each part: file and caption. ``encoded``: pixels as
    such a file."""
    for part, examples in parts.items():
        (folder / part).mkdir(parents=True)
        lines = []
        for number, example in enumerate(examples, 1):
            file = f"{part}/{number:05}.png"
            (folder / file).write_bytes(encoded(example.drawing.pixels()))
            lines.append(f"{file}\t{example.caption}\n")
        (folder / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")


def things() -> list[Thing]:
    """Return all combinations of size, colour and shape."""
    return [Thing(*words) for words in product(SIZES, COLOURS, SHAPES)]


def _examples(drawings: list[CaptionedDrawing]) -> Iterator[Example]:
    for drawing in drawings:
        for caption in drawing.captions:
            yield Example(caption, drawing)
