"""What a demo is, and the files that it makes before it trains, where what is read is no text: they
lie beside the run folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
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
    prepare: Callable[[Recipe, Path, Console], Recipe] | None = None
    """Makes what is read where that is no text, beside the run folder. -> The recipe that reads
    it."""


def files_beside(to: Path, noun: str) -> Path:
    """Where the files of a demo in the run folder ``to`` lie."""
    return to.with_name(f"{to.name}-{noun}")


def new_folder(to: Path, noun: str, notice: str, console: Console) -> Path:
    """An empty folder for the files of a demo, its notice in it; an older one is replaced.

    Errors: ``RunError`` for a folder there that the demo did not make.
    """
    from dragoman.base.atomic import write_text

    folder = files_beside(to, noun)
    if folder.exists():
        if not (folder / _NOTICE).is_file():
            raise RunError(
                f"{folder} exists and holds no {noun} of a demo; choose another folder: --to FOLDER"
            )
        shutil.rmtree(folder)
    console.print(notice, style="bold", soft_wrap=True)
    folder.mkdir(parents=True)
    write_text(folder / _NOTICE, notice + "\n")
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
