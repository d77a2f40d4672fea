"""Files that a demo makes and learns from: they lie in a folder beside the run folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.recipe import Recipe

_NOTICE = "NOTICE.txt"


def folder_beside(to: Path, files: str) -> Path:
    """Where the files of a demo in the run folder ``to`` lie; ``files``: what they are."""
    return to.with_name(f"{to.name}-{files}")


def beside(to: Path, files: str, notice: str) -> Path:
    """Makes that folder anew, with a notice that says how the files were made.

    Errors: ``RunError`` for a folder there that no demo has made.
    """
    from dragoman.atomic import write_text
    from dragoman.errors import RunError

    folder = folder_beside(to, files)
    if folder.exists():
        if not (folder / _NOTICE).is_file():
            raise RunError(
                f"{folder} exists and holds no {files} of a demo; choose another folder: "
                "--to FOLDER"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    write_text(folder / _NOTICE, notice + "\n")
    return folder


def reading_from(folder: Path, recipe: Recipe) -> Recipe:
    """The recipe with the lists of ``folder`` as its training, dev and test examples."""
    corpora = {
        name: corpus.model_copy(update={"source": str(folder / f"{name}.tsv")})
        for name, corpus in (
            ("train", recipe.data.train[0]), ("dev", recipe.data.dev), ("test", recipe.data.test),
        )
        if corpus is not None
    }  # fmt: skip
    data = recipe.data.model_copy(update={**corpora, "train": (corpora["train"],)})
    return recipe.model_copy(update={"data": data})
