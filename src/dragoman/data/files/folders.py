"""What a folder probably holds, for a person who gave it without saying what is to be learned."""

from __future__ import annotations

import shlex
from pathlib import Path

from dragoman.base.wording import plural
from dragoman.data.files.file_examples import shown_in
from dragoman.forms.languages import CODES
from dragoman.sources.file_kinds import kind_among

_TREES = (".mrg", ".ptb", ".parse")
_TEXTS = (".txt", ".md")


def advice_for(root: Path) -> str:
    """A sentence that says what a folder holds, and the command that learns from it.

    Errors: ``DataError`` for a folder that cannot be read.
    """
    files = sorted(shown_in(root))
    train = f"dragoman train {shlex.quote(str(root))}"
    if (root / "recipe.toml").is_file():
        return (
            f"{root} is a run. To go on with its training: dragoman resume {shlex.quote(str(root))}"
        )
    kind = kind_among(files)
    if count := kind.count(files):
        has = f"{root} has {plural(count, kind.noun)}"
        if any(file.suffix == ".json" for file in files):
            return f"{has} and a .json file. If it lists boxes (COCO): {train} --task detection"
        folders = {file.relative_to(root).parts[0] for file in files if file.parent != root}
        if len(folders) > 1:
            return (
                f"{has} in {len(folders)} folders. If the name of each folder is a label: {train} "
                "--task classification"
            )
        said = "a text of the same name (.txt) with what is said in it beside each recording, or "
        return (
            f"{has}, and nothing says what is to be learned of them. Put "
            f"{said if '.wav' in kind.endings else ''}the files into a folder for each label: "
            f"{train} --task classification"
        )
    if any(file.suffix in _TREES for file in files):
        return f"{root} has files of bracketed trees: {train} --task parsing"
    sides = [file for file in files if file.name.removesuffix(".gz").rpartition(".")[2] in CODES]
    if len(sides) == 2:
        pair = " ".join(shlex.quote(str(file)) for file in sides)
        return f"{root} has two files of parallel text: dragoman train {pair}"
    if sides or any(file.suffix in _TEXTS for file in files):
        return (
            f"{root} is a folder of {plural(len(files), 'file')}. To learn to translate, name the "
            "two files of parallel text. To learn to write such text: "
            f"{train} --task language-model"
        )
    return f"{root} is a folder without texts, recordings, pictures or trees"
