"""The declaration of a demo, and the files that it makes before training if its source is no
text; they are in a folder next to the run folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.base.errors import RunError

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.recipe.recipe import Recipe
    from dragoman.runs.run import Run

RECORDINGS, PICTURES, SCENES = "recordings", "pictures", "scenes"
CAPTIONED = "captions"
_NOUNS = (RECORDINGS, PICTURES, SCENES, CAPTIONED)
_NOTICE = "NOTICE.txt"


class DemoFiles(NamedTuple):
    """The files that a demo makes and learns from."""

    noun: str
    """The ending of their folder's name."""
    notice: str
    telling: str
    """A line with {count} and {folder} that announces the files."""
    parts: Callable[[], Mapping[Any, Sized]]
    """A function that draws or composes the examples of each part."""
    write: Callable[[Path, Any], None]
    """A function that writes the parts into a folder."""


class Demo(NamedTuple):
    """A demo: its recipe, and the display of its results."""

    recipe: str
    about: str
    """The description of the model for messages."""
    show: Callable[[Run, Any, Console], str]
    """A function that prints the results on the test set, its second argument, and returns where
    the pictures and the report are."""
    steps: tuple[str, ...]
    """The next commands, without the name of the program."""
    files: Callable[[], DemoFiles] | None = None
    """A function that declares the files, if the source is no text. Errors: ``DataError`` if the
    extra that reads them is missing."""
    learn_first: Callable[[Recipe, Path, Console], Recipe] | None = None
    """A function that first trains what the run needs on the files in that folder, and returns
    the recipe with it."""


def files_beside(to: Path, noun: str) -> Path:
    """Return the folder for the files of a demo in the run folder ``to``."""
    return to.with_name(f"{to.name}-{noun}")


def write_files(files: DemoFiles, to: Path, console: Console) -> Path:
    """Make the files of a demo in the run folder ``to``, replacing older ones; return their
    folder.

    Errors: ``RunError`` for an existing folder that the demo did not make.
    """
    from dragoman.base.atomic import write_text

    folder = files_beside(to, files.noun)
    if folder.exists():
        if not (folder / _NOTICE).is_file():
            raise RunError(
                f"{folder} exists, but was not created by a demo of {files.noun}. Choose another "
                "folder: --to FOLDER"
            )
        shutil.rmtree(folder)
    console.print(files.notice, style="bold", soft_wrap=True)
    folder.mkdir(parents=True)
    write_text(folder / _NOTICE, files.notice + "\n")
    parts = files.parts()
    count = sum(map(len, parts.values()))
    console.print(files.telling.format(count=f"{count:,}", folder=folder))
    files.write(folder, parts)
    return folder


def reading(recipe: Recipe, folder: Path) -> Recipe:
    """Return the recipe with the files of the same names in that folder as its corpora."""
    corpora = {
        name: corpus.model_copy(update={"source": str(folder / Path(corpus.source).name)})
        for name, corpus in (
            ("train", recipe.data.train[0]), ("dev", recipe.data.dev), ("test", recipe.data.test),
        )
        if corpus is not None
    }  # fmt: skip
    data = recipe.data.model_copy(update={**corpora, "train": (corpora["train"],)})
    return recipe.model_copy(update={"data": data})


def is_read_by(recipe: Recipe, to: Path) -> bool:
    """Return True if the recipe of a run folder reads files of a demo."""
    folders = {files_beside(to, noun).resolve() for noun in _NOUNS}
    return any(
        not folders.isdisjoint(Path(entry.source).resolve().parents) for entry in recipe.data.train
    )
