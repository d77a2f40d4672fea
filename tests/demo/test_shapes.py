"""The drawn demo: shapes are where and what they are said to be, and nothing held out is trained
on."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dragoman.demo import shapes
from dragoman.demo.corpus import Split
from dragoman.demo.shapes import (
    PATTERNS,
    SHAPES,
    SIDE,
    Drawing,
    draw_demo,
    is_held_out,
    write_drawn,
)
from dragoman.pictures.bitmaps import png_of

SMALL: dict[Split, int] = {"train": 240, "dev": 16, "test": 48}

AREAS = {
    "circle": 0.8 * np.pi, "square": 1.56**2, "triangle": 0.56 * 1.7**2,
    "cross": 2 * 0.64 * 1.84 - 0.64**2, "star": 5 * 0.45 * np.sin(np.pi / 5),
}  # fmt: skip
"""Of those whose area follows from the lengths in their description."""


@pytest.mark.parametrize("shape", AREAS)
def test_a_shape_has_its_area(shape: str) -> None:
    at = np.linspace(-1.5, 1.5, 1200, dtype=np.float32)
    inside = shapes._INSIDE[shape](at[None] + 0 * at[:, None], -at[:, None] + 0 * at[None])
    assert inside.mean() * 9 == pytest.approx(AREAS[shape], rel=0.01)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_whole_shape_lies_in_the_picture(shape: str) -> None:
    """However it is placed, turned and slanted: nothing but paper touches the border, nearly."""
    for seed in range(25):
        pixels = Drawing(shape, "filled", "black", seed).pixels().astype(float)
        border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        paper = np.median(border, axis=0)
        assert (np.abs(border - paper).max(axis=1) > 110).mean() < 0.2, seed


def test_a_pattern_paints_a_part_of_the_shape() -> None:
    at = (np.arange(64, dtype=np.float32) + 0.5 - 32) / 28
    u, v = at[None] + 0 * at[:, None], -at[:, None] + 0 * at[None]
    painted = {}
    for name, pattern in PATTERNS.items():
        inside = shapes._INSIDE["square"](u, v)
        part = pattern(inside, u, v, 28)
        assert not (part & ~inside).any()
        painted[name] = part
        share = part.sum() / inside.sum()
        assert share == 1 if name == "filled" else 0.3 < share < 0.75, (name, share)
    outline = painted["outlined"]
    assert outline[32, 32] == 0 and shapes._INSIDE["square"](u, v)[32, 32]
    assert all((a != b).any() for a, b in product(painted.values(), repeat=2) if a is not b)


def test_parts_share_no_combination_and_each_pair_is_trained() -> None:
    parts = draw_demo(SMALL)
    assert {name: len(part) for name, part in parts.items()} == SMALL
    assert parts == draw_demo(SMALL)
    held = {name: {one[:3] for one in part} for name, part in parts.items()}
    assert not (held["train"] & held["test"] or held["dev"] & held["test"])
    assert all(is_held_out(*one) == (name == "test") for name in held for one in held[name])
    # Two of the three never tell that a combination is held out.
    for left in range(3):
        pairs = {name: {(*one[:left], *one[left + 1 :]) for one in held[name]} for name in held}
        assert pairs["train"] >= pairs["test"] and len(pairs["test"]) in (36, 48)
    assert len(held["test"]) == 48 and len(held["train"]) == 240
    seeds = [one.seed for part in parts.values() for one in part]
    assert len(set(seeds)) == len(seeds)
    assert not {one.seed for one in draw_demo(SMALL, seed=2)["train"]} & set(seeds)


def test_pictures_are_written_with_their_lists(tmp_path: Path) -> None:
    parts = draw_demo({"train": 5, "dev": 1, "test": 1})
    write_drawn(tmp_path / "new", parts, png_of)
    lines = [one.split("\t") for one in (tmp_path / "new/train.tsv").read_text().splitlines()]
    assert [label for _, label in lines] == [one.shape for one in parts["train"]]
    for (file, label), one in zip(lines, parts["train"], strict=True):
        assert label in file and one.pattern in file and one.colour in file
        found = np.asarray(Image.open(tmp_path / "new" / file))
        assert found.shape == (SIDE, SIDE, 3) and np.array_equal(found, one.pixels())
