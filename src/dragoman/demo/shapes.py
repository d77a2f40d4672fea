"""The drawn demo: shapes that a program draws, to be told apart whatever their pattern, colour,
place, size and slant.

Shape, pattern and colour together decide the part of the corpus: one of six combinations stands in
the test part alone, so that a model meets it there for the first time. Of each shape, every pattern
and every colour is trained, but for each pattern of a shape one colour is missing. The dev part has
other pictures of what is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.demo.corpus import Split

DRAWN_NOTICE = (
    "The pictures are synthetic: the program draws shapes with patterns. High scores only show "
    "that the program works; they say nothing about photographs."
)

SIZES: dict[Split, int] = {"train": 6_000, "dev": 320, "test": 800}
"""The number of pictures in each part."""
SIDE = 32
"""Pixels, of each side of a picture."""
_FINE = 2
"""Points of a pixel in each direction, whose mean it is."""
_RING = 16
"""Directions in which an outline is looked for."""
_LEAST_CONTRAST = 0.3
"""The least difference in brightness between paper and ink, as means of red, green and blue from 0
to 1."""

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Inside = npt.NDArray[np.bool_]


def _star(u: Floats, v: Floats) -> Inside:
    """Five points, the notches between them at 0.45 of their distance from the middle."""
    turn = 2 * np.pi / 5
    angle = np.abs((np.arctan2(u, v) + turn / 2) % turn - turn / 2)  # from the next point
    notch = 0.45 * np.array([np.sin(turn / 2), np.cos(turn / 2)])
    # Left of the line from the point (0, 1) to the notch.
    far = np.hypot(u, v)
    across, up = far * np.sin(angle), far * np.cos(angle)
    inside: Inside = notch[0] * (1 - up) - across * (1 - notch[1]) >= 0
    return inside


def _heart(u: Floats, v: Floats) -> Inside:
    x, y = 1.2 * u, 1.2 * v + 0.1
    square, more = x * x, x * x + y * y - 1
    inside: Inside = more * more * more <= square * y * y * y
    return inside


_INSIDE: dict[str, Callable[[Floats, Floats], Inside]] = {
    "arrow": lambda u, v: (
        ((np.abs(u) <= 0.3) & (v <= 0.15) & (v >= -0.95))
        | ((v >= 0.1) & (np.abs(u) <= 0.85 * (0.95 - v)))
    ),
    "circle": lambda u, v: u**2 + v**2 <= 0.8,
    "cross": lambda u, v: (
        ((np.abs(u) <= 0.32) & (np.abs(v) <= 0.92)) | ((np.abs(v) <= 0.32) & (np.abs(u) <= 0.92))
    ),
    "heart": _heart,
    "moon": lambda u, v: (u**2 + v**2 <= 0.95) & ((u - 0.5) ** 2 + v**2 > 0.55),
    "square": lambda u, v: np.maximum(np.abs(u), np.abs(v)) <= 0.78,
    "star": _star,
    "triangle": lambda u, v: (v >= -0.7) & (np.abs(u) <= 0.56 * (1.0 - v)),
}
"""The shapes by name. Each function returns true for places inside it, u to the right and v
upwards; no place in a shape is farther than about 1 from 0."""
SHAPES = tuple(_INSIDE)
"""The shapes, in the order of their labels."""


def _outline(inside: Inside, u: Floats, v: Floats, radius: float) -> Inside:
    """The places inside a shape within 0.22 radii of its border."""
    within = inside
    for turn in np.arange(_RING) * 2 * np.pi / _RING:
        down, across = (round(0.22 * radius * part) for part in (np.sin(turn), np.cos(turn)))
        within = within & np.roll(inside, (down, across), (0, 1))
    return inside & ~within


def _dot(inside: Inside, u: Floats, v: Floats, radius: float) -> Inside:
    return inside & (((2.5 * u + 0.5) % 1 - 0.5) ** 2 + ((2.5 * v + 0.5) % 1 - 0.5) ** 2 <= 0.13)


PATTERNS: dict[str, Callable[[Inside, Floats, Floats, float], Inside]] = {
    "filled": lambda inside, u, v, radius: inside,
    "outlined": _outline,
    "striped": lambda inside, u, v, radius: inside & ((2.2 * v) % 1 < 0.55),
    "barred": lambda inside, u, v, radius: inside & ((2.2 * u + 0.25) % 1 < 0.55),
    "checked": lambda inside, u, v, radius: (
        inside & ((np.floor(2.5 * u) + np.floor(2.5 * v)) % 2 == 0)
    ),
    "dotted": _dot,
}
"""The patterns by name. Each function returns the painted places of the shape ``inside`` with its
radius in points."""


INKS = {
    "black": (0.1, 0.1, 0.1), "blue": (0.1, 0.2, 0.8), "brown": (0.45, 0.28, 0.1),
    "green": (0.1, 0.5, 0.15), "purple": (0.5, 0.1, 0.6), "red": (0.8, 0.1, 0.1),
}  # fmt: skip
"""Red, green and blue of each colour, from 0 to 1."""
_SPREAD = 0.08
"""The most that an ink differs from its colour, for each of red, green and blue."""


class Drawing(NamedTuple):
    """One picture; all but shape, pattern and colour follows from the seed."""

    shape: str
    pattern: str
    colour: str
    seed: int

    @property
    def name(self) -> str:
        """The label of the picture: colour, pattern and shape."""
        return f"{self.colour}-{self.pattern}-{self.shape}"

    def pixels(self) -> Pixels:
        """Draw the picture. Shape (SIDE, SIDE, 3)."""
        draw = np.random.default_rng(self.seed)
        points = SIDE * _FINE
        radius = points * draw.uniform(0.32, 0.46)
        free = points / 2 - radius
        middle = points / 2 + draw.uniform(-free, free, 2)
        turn, slant = draw.uniform(-0.4, 0.4), draw.uniform(-0.25, 0.25)
        at = np.arange(points, dtype=np.float32) + np.float32(0.5)
        right, up = ((at - middle[1]) / radius)[None], ((middle[0] - at) / radius)[:, None]
        v = (np.cos(turn) * up - np.sin(turn) * right).astype(np.float32)
        u = (np.cos(turn) * right + np.sin(turn) * up - slant * v).astype(np.float32)
        inside = _INSIDE[self.shape](u, v)
        painted = PATTERNS[self.pattern](inside, u, v, radius)
        share = painted.reshape(SIDE, _FINE, SIDE, _FINE).mean(axis=(1, 3))[..., None]
        ink, paper = _colours(self.colour, draw)
        light = share * ink + (1 - share) * paper
        light += draw.normal(0, draw.uniform(0, 0.06), light.shape)
        pixels: Pixels = np.clip(np.rint(255 * light), 0, 255).astype(np.uint8)
        return pixels


def _colours(
    colour: str, draw: np.random.Generator
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ink, and any paper that is lighter."""
    ink = np.array(INKS[colour]) + draw.uniform(-_SPREAD, _SPREAD, 3)
    while True:
        paper = draw.uniform(0.4, 1, 3)
        if paper.mean() - ink.mean() >= _LEAST_CONTRAST:
            return ink, paper


def is_held_out(shape: str, pattern: str, colour: str) -> bool:
    """True if a combination is only in the test part: one colour for each shape in each pattern."""
    places = (SHAPES.index(shape), tuple(PATTERNS).index(pattern), tuple(INKS).index(colour))
    return sum(places) % len(INKS) == 0


def draw_demo(
    sizes: dict[Split, int] | None = None, seed: int = 1
) -> dict[Split, tuple[Drawing, ...]]:
    """The pictures of each part, its combinations in turn; the same for the same arguments."""
    wanted = SIZES if sizes is None else sizes
    parts, number = dict[Split, tuple[Drawing, ...]](), seed * sum(wanted.values())
    for name, count in wanted.items():
        is_test = name == "test"
        own = [
            (shape, pattern, colour)
            for colour, pattern, shape in product(INKS, PATTERNS, SHAPES)
            if is_held_out(shape, pattern, colour) == is_test
        ]
        parts[name] = tuple(
            Drawing(*own[place % len(own)], number + place) for place in range(count)
        )
        number += count
    return parts


def write_drawn(
    folder: Path, parts: dict[Split, tuple[Drawing, ...]], encoded: Callable[[Pixels], bytes]
) -> None:
    """The pictures as PNG files, and a list of each part: file and label. ``encoded``: pixels as
    such a file."""
    for name, drawings in parts.items():
        (folder / name).mkdir(parents=True)
        lines = []
        for number, drawing in enumerate(drawings):
            file = f"{name}/{number:04}-{drawing.name}.png"
            (folder / file).write_bytes(encoded(drawing.pixels()))
            lines.append(f"{file}\t{drawing.shape}\n")
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
