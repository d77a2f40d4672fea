"""What a demo declares, and the files that it makes before it trains, where what it reads is no
text: they lie beside the run folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.base.errors import RunError

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.recipe.recipe import Recipe
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
    """A line with {count} and {folder} that says how many files are made, and where."""
    parts: Callable[[], Mapping[Any, Sized]]
    """Draws or composes the examples of each part."""
    write: Callable[[Path, Any], None]
    """Writes the parts into a folder."""


class Demo(NamedTuple):
    """What a demo trains, and what it shows of it."""

    recipe: str
    about: str
    """What is trained."""
    show: Callable[[Run, Any, Console], str]
    """Prints what was measured on the test set, which is its second argument. -> Where its pictures
    and its report are."""
    steps: tuple[str, ...]
    """What to do next, behind the name of the program."""
    files: Callable[[], DemoFiles] | None = None
    """The files that are read where they are no text. Errors: ``DataError`` where the extra that
    reads them is missing."""
    learn_first: Callable[[Recipe, Path, Console], Recipe] | None = None
    """Trains what the run needs on these files, which lie in that folder. -> The recipe with it."""


def files_beside(to: Path, noun: str) -> Path:
    """Where the files of a demo in the run folder ``to`` lie."""
    return to.with_name(f"{to.name}-{noun}")


def write_files(files: DemoFiles, to: Path, console: Console) -> Path:
    """Make the files of a demo in the run folder ``to``, in place of older ones. -> Their folder.

    Errors: ``RunError`` for a folder there that the demo did not make.
    """
    from dragoman.base.atomic import write_text

    folder = files_beside(to, files.noun)
    if folder.exists():
        if not (folder / _NOTICE).is_file():
            raise RunError(
                f"{folder} exists and holds no {files.noun} of a demo; choose another folder: --to "
                "FOLDER"
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
    """The recipe, whose corpora are the files of the same names in that folder."""
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
    """Whether the recipe of a run folder reads such files beside it."""
    folders = {files_beside(to, noun).resolve() for noun in _NOUNS}
    return any(
        not folders.isdisjoint(Path(one.source).resolve().parents) for one in recipe.data.train
    )
