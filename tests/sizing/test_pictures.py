"""The size at which pictures are read is made of the pictures that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from dragoman.base.errors import DataError
from dragoman.sources.file_examples import source_of_pictures


@pytest.mark.parametrize(
    ("sizes", "mode", "read"),
    [
        ([(28, 28)] * 3, "L", (28, 28, 1, 4)),
        ([(64, 48)] * 3, "RGB", (48, 64, 3, 8)),
        ([(33, 33)] * 3, "RGB", (33, 33, 3, 3)),
        ([(640, 480), (480, 640), (500, 500)], "RGB", (64, 64, 3, 8)),
        ([(30, 40), (31, 50), (90, 33)], "L", (28, 28, 1, 4)),
        ([(1, 2), (2, 3)], "L", (8, 8, 1, 4)),
        ([(61, 61)] * 2, "L", (56, 56, 1, 8)),
        ([(400, 20)] * 2, "P", (20, 20, 3, 4)),
    ],
)
def test_size_channels_and_patch(
    tmp_path: Path, sizes: list[tuple[int, int]], mode: str, read: tuple[int, ...]
) -> None:
    files = [tmp_path / f"{number}.png" for number in range(len(sizes))]
    for file, size in zip(files, sizes, strict=True):
        Image.new(mode, size).save(file)
    found = source_of_pictures(files)
    assert (found.height, found.width, found.channels, found.patch) == read


def test_a_picture_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(b"hello")
    with pytest.raises(DataError, match=r"one\.png is damaged or not a supported picture"):
        source_of_pictures([tmp_path / "one.png"])


def test_a_single_pixel_shows_nothing(tmp_path: Path) -> None:
    Image.new("L", (9, 9)).save(tmp_path / "0.png")
    Image.new("L", (1, 1)).save(tmp_path / "1.png")
    with pytest.raises(DataError, match=r"1\.png is a single pixel"):
        source_of_pictures([tmp_path / "0.png", tmp_path / "1.png"])
