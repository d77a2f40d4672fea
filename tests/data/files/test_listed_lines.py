"""What is wrong with a file that a list names is told with the line, wherever it is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_of_files import recipe_of
from row_files import write_pictures

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import naming_lines
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.runs.recipe.recipe import Recipe
from dragoman.tasks.training import train

_SMALL = (
    "model.model_dim=16", "model.ffn_dim=16", "model.layers=1", "training.updates=1",
    "training.precision=fp32", "training.validate_every=1",
)  # fmt: skip


def write_list(folder: Path, name: str, first: int, damaged: str = "") -> Path:
    """24 pictures and their labels; ``damaged`` names what replaces the content of the one in line
    5, which is found after the header was read."""
    write_pictures(folder / name, first=first)
    files = sorted((folder / name).rglob("*.*g"))
    if damaged:
        content = files[4].read_bytes()
        files[4].write_bytes(content[: len(content) // 2] if damaged == "cut off" else b"hello")
    listing = folder / f"{name}.tsv"
    lines = [f"{file.relative_to(folder)}\t{file.parent.name}\n" for file in files]
    listing.write_text("".join(lines), encoding="utf-8")
    return listing


def recipe(*given: Path, dev: Path | None = None) -> Recipe:
    held = None if dev is None else [str(dev)]
    names = [str(path) for path in given]
    return recipe_of(names, task="classification", dev=held, changes=_SMALL, say=lambda _: None)[0]


def test_a_picture_whose_header_tells_it(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"^train\.tsv, line 5: .*is damaged or not a supported picture"
    ):
        recipe(write_list(tmp_path, "train", 0, "hello"))


def test_a_picture_that_training_reads(tmp_path: Path) -> None:
    made = recipe(write_list(tmp_path, "train", 0, "cut off"))
    with pytest.raises(DataError, match=r"^train\.tsv, line 5: .*g is damaged or cut off"):
        train(made, tmp_path / "run", say=lambda _: None, display=False)


def test_a_picture_that_validation_reads(tmp_path: Path) -> None:
    dev = write_list(tmp_path, "dev", 50, "cut off")
    made = recipe(write_list(tmp_path, "train", 0), dev=dev)
    with pytest.raises(DataError, match=r"^dev\.tsv, line 5: .*g is damaged or cut off"):
        train(made, tmp_path / "run", say=lambda _: None, display=False)


def test_what_is_not_listed_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    (tmp_path / "list.tsv").write_text("a.png\tx\n", encoding="utf-8")
    listed = CorpusSettings(source=str(tmp_path / "list.tsv"), holds="files")
    for told in ("nothing to do with files", f"{tmp_path}/a.png2 is empty"):
        with pytest.raises(DataError) as caught, naming_lines(listed, None):
            raise DataError(told)
        assert str(caught.value) == told
