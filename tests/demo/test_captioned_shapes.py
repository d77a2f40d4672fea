"""Shapes and their captions: what is held out is never learned from, and a picture is its words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dragoman.demo.captioned_shapes import (
    COLOURS,
    SHAPES,
    CaptionedDrawing,
    Thing,
    draw_shapes,
    write_shapes,
)
from dragoman.pictures.bitmaps import png_of


def test_what_is_held_out_is_in_no_other_part() -> None:
    shapes = draw_shapes(train=300, dev=40, test=40)
    seen: set[bytes] = set()
    captions: set[str] = set()
    for part in shapes.values():
        pictures = {one.drawing.pixels().tobytes() for one in part}
        words = {one.caption for one in part}
        assert len(words) == len(part) and not (pictures & seen) and not (words & captions)
        seen, captions = seen | pictures, captions | words
    words = {word for one in shapes["train"] for word in one.caption.split()}
    held = {word for one in (*shapes["dev"], *shapes["test"]) for word in one.caption.split()}
    assert held <= words and {*SHAPES, *COLOURS} <= words
    assert draw_shapes(train=300, dev=40, test=40) == shapes
    assert draw_shapes(train=300, dev=40, test=40, seed=2) != shapes


def test_a_picture_is_what_its_words_say() -> None:
    red, blue = Thing("small", "red", "circle"), Thing("large", "blue", "square")
    drawing = CaptionedDrawing((red, blue), "above")
    assert drawing.captions == (
        "a small red circle above a large blue square",
        "a large blue square below a small red circle",
    )
    pixels = drawing.pixels().astype(int)
    assert pixels.shape == (32, 32, 3)
    assert pixels[8, 16].tolist() == list(COLOURS["red"])
    assert pixels[24, 16].tolist() == list(COLOURS["blue"])
    count = {
        name: int((np.abs(pixels - COLOURS[name]).sum(-1) == 0).sum()) for name in ("red", "blue")
    }
    assert count["blue"] == 14 * 14 and 36 < count["red"] < np.pi * 16
    beside = CaptionedDrawing((blue, red), "left of").pixels()
    assert beside[16, 8].tolist() == list(COLOURS["blue"])
    assert beside[16, 24].tolist() == list(COLOURS["red"])
    assert drawing.captions[0].count("above") == 1


def test_lists_name_their_pictures(tmp_path: Path) -> None:
    shapes = draw_shapes(train=3, dev=2, test=2)
    write_shapes(tmp_path, shapes, png_of)
    for name, part in shapes.items():
        listed = (tmp_path / f"{name}.tsv").read_text(encoding="utf-8")
        lines = [line.split("\t") for line in listed.splitlines()]
        assert [caption for _, caption in lines] == [one.caption for one in part]
        assert all((tmp_path / file).read_bytes().startswith(b"\x89PNG") for file, _ in lines)
