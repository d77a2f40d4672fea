"""The pictures of ``demo/captioned_shapes.py`` as files, each beside its caption in a list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.atomic import write_text
from dragoman.demo.captioned_shapes import DrawnShapes, Example
from dragoman.errors import FileError
from dragoman.pictures.bitmaps import png_of


class ShapeLists(NamedTuple):
    """The lists of three parts, ``file<TAB>caption`` in each line."""

    train: Path
    dev: Path
    test: Path


def write_shapes(folder: Path, shapes: DrawnShapes) -> ShapeLists:
    """Write all pictures of a corpus into ``folder``. Raises FileError if that fails."""
    lists = ShapeLists(*(folder / f"{part}.tsv" for part in DrawnShapes._fields))
    for path, examples in zip(lists, shapes, strict=True):
        _write_list(path, examples)
    return lists


def _write_list(path: Path, examples: Sequence[Example]) -> None:
    pictures = path.with_suffix("")
    lines = []
    try:
        pictures.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(examples, 1):
            file = pictures / f"{number:05}.png"
            file.write_bytes(png_of(one.drawing.pixels()))
            lines.append(f"{pictures.name}/{file.name}\t{one.caption}\n")
    except OSError as error:
        raise FileError(f"cannot write pictures into {pictures}: {error.strerror}") from error
    write_text(path, "".join(lines))
