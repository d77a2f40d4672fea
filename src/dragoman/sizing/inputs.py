"""What a user names: files of text, or a recipe, and the options that are given beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.recipe import Recipe
from dragoman.runs.prepare import Say
from dragoman.runs.run import Run
from dragoman.specs.spec import Spec
from dragoman.task import ModelPart

_TREES = (".mrg", ".ptb", ".parse")
"""How names of files of bracketed trees end."""


@dataclass(frozen=True)
class Inputs:
    """Files or a recipe, and what is to be learned of them; ``recipe_of`` tells of the options."""

    names: Sequence[str]
    task: Spec
    names_task: bool
    """Whether the task is named, and not that of ``base``, of ``start_from`` or the default."""
    texts: str | None
    base: Recipe | None
    dev: Sequence[str] | None
    test: Sequence[str] | None
    languages: str | None
    keys: tuple[str, str] | None
    columns: str | None
    groups: str | None
    label_ends: str | None
    codes: str | None
    """The run whose codes a painter is to write."""
    start_from: Run | None
    take: ModelPart | None
    model: str | None
    minutes: float | None
    say: Say

    @property
    def first(self) -> str:
        """The first name, from the root."""
        return absolute(self.names[0])

    @property
    def are_files(self) -> bool:
        """Whether the first is a file, or a folder of files, and no recipe."""
        return is_text(self.names[0])

    @property
    def begins_anew(self) -> bool:
        """Whether neither a recipe nor a run says what the model is."""
        return self.base is None and self.start_from is None


def is_text(path: str) -> bool:
    """Whether it is a file or a folder, and no recipe by its name."""
    return Path(path).exists() and not path.endswith(".toml")


def is_treebank(path: str) -> bool:
    """Whether its name is that of a file of bracketed trees."""
    return path.removesuffix(".gz").endswith(_TREES)


def absolute(path: str) -> str:
    """A path from the root, as recipes have it."""
    return str(Path(path).absolute())
