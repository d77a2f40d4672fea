"""What a user names: files of text, or a recipe, the options that are given beside them, and the
languages that follow from both."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dragoman.base.errors import RecipeError
from dragoman.base.task import ModelPart
from dragoman.base.wording import shortened
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.languages import CODES, COUNTRIES, code_meant, name_of
from dragoman.recipe.recipe import Recipe
from dragoman.recipe.sections import LanguageSettings
from dragoman.recipe.spec import Spec
from dragoman.runs.prepare import Say
from dragoman.runs.run import Run

_TREES = (".mrg", ".ptb", ".parse")
"""How names of files of bracketed trees end."""


@dataclass(frozen=True)
class Inputs:
    """Files or a recipe, and what is to be learned of them."""

    names: Sequence[str]
    recipes: type[Recipe]
    """The class of the recipe, which knows the tasks."""
    task: str | None = None
    """What files of text are to teach, where neither ``recipe`` nor ``start_from`` says it."""
    texts: str | None = None
    """What ends a text that stands alone, as ``CorpusSettings.format`` has it; None: that is found
    out."""
    recipe: str | None = None
    """A recipe for files of its own kind."""
    dev: Sequence[str] | None = None
    """Files of their own, as many as the task has, as ``test``."""
    test: Sequence[str] | None = None
    languages: str | None = None
    keys: tuple[str, str] | None = None
    """Where a JSON Lines file holds source and target."""
    columns: str | None = None
    """In which order a tab-separated file holds texts and labels (``data/files/columns.py``)."""
    groups: str | None = None
    """How the name of a recording tells its speaker (``CorpusSettings.group_pattern``)."""
    label_ends: str | None = None
    """As ``CorpusSettings`` has it; None: as ``recipe`` or ``start_from`` has learned."""
    codes: str | None = None
    """The run whose codes a painter is to write."""
    start_from: Run | None = None
    """The run to fine-tune, or to ``take`` a part of."""
    take: ModelPart | None = None
    model: str | None = None
    """A family of models (``size.py``), where neither ``recipe`` nor ``start_from`` has one."""
    minutes: float | None = None
    """The time that there will be: with files alone, the size of the model is one that this machine
    can teach in them, by a measurement of some seconds, and ``say`` gets which."""
    say: Say = print
    names_task: bool = False
    """Whether the task is named, and not that of ``recipe``, of ``start_from`` or the default."""

    @cached_property
    def base(self) -> Recipe | None:
        """The recipe that is named for the files. Errors: ``RecipeError``."""
        return self.recipes.load(self.recipe) if self.recipe else None

    @property
    def spec(self) -> Spec:
        """The task, once it is known."""
        return self.recipes.tasks[self.task or "translation"]

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

    def refuse(self, options: Sequence[str], why: str) -> None:
        """Errors: ``RecipeError`` for any of these options that is given."""
        for name in options:
            if getattr(self, name) is not None:
                option = "from" if name == "start_from" else name.replace("_", "-")
                raise RecipeError(f"--{option}{why}")


def is_text(path: str) -> bool:
    """Whether it is a file or a folder, and no recipe by its name."""
    return Path(path).exists() and not path.endswith(".toml")


def is_treebank(path: str) -> bool:
    """Whether its name is that of a file of bracketed trees."""
    return path.removesuffix(".gz").endswith(_TREES)


def absolute(path: str) -> str:
    """A path from the root, as recipes have it."""
    return str(Path(path).absolute())


_KANURI = " (kr is Kanuri, which is given as kau)"


def languages_of(paths: Sequence[str]) -> tuple[str, str]:
    """Guess languages from names: my.en and my.de.gz are "en" and "de"; "und" if unsure.

    Errors: ``RecipeError`` for my.kr, which is a text in Kanuri by its name."""
    codes = []
    for path in paths:
        suffix = Path(path.removesuffix(".gz")).suffix.removeprefix(".").lower()
        if suffix in CODES and suffix in COUNTRIES:
            code = COUNTRIES[suffix]
            parts = Path(path).name.split(".")
            named = ".".join(code if part == suffix else part for part in parts)
            renamed = Path(path).with_name(named)
            raise RecipeError(
                f"{path}: the code of {name_of(code)} is {code}, and {suffix} is another language. "
                f"Rename the file: mv {shlex.quote(path)} {shlex.quote(str(renamed))}; or name the "
                f"languages by --languages{_KANURI}"
            )
        codes.append(suffix if suffix in CODES else "und")
    return (codes[0], codes[1]) if len(codes) == 2 else ("und", "und")


def given_languages(codes: str | None, paths: Sequence[str]) -> tuple[str, str]:
    """Of both sides, by ``--languages`` or else by the names of their files.

    Errors: ``RecipeError`` for anything but two codes.
    """
    if not codes:
        return languages_of(paths)
    source, dash, target = codes.partition("-")
    if not dash or not source or not target:
        raise RecipeError(f"--languages {codes}: write it as en-de")
    _check_codes(codes)
    return source, target


def given_language(code: str | None, path: str) -> str:
    """Of texts that stand alone. Errors: ``RecipeError`` for two codes."""
    if code is not None and "-" in code:
        raise RecipeError(f"--languages {code}: texts that stand alone have one, such as en")
    _check_codes(code or "")
    return code or languages_of([path, path])[0]


def _check_codes(codes: str) -> None:
    """Errors: ``RecipeError`` for names of languages and for codes of countries."""
    source, dash, target = codes.partition("-")
    meant = f"{code_meant(source)}{dash}{code_meant(target)}"
    if meant != codes:
        kanuri = _KANURI if "kr" in (source, target) else ""
        raise RecipeError(f"--languages {codes}: languages have codes: --languages {meant}{kanuri}")


def known_of(languages: Mapping[str, str], otherwise: LanguageSettings) -> dict[str, str]:
    """The languages that are said; of each that is not, the one of ``otherwise``."""
    return {
        side: getattr(otherwise, side) if code == "und" else code
        for side, code in languages.items()
    }


def two_files(inputs: Inputs) -> CorpusSettings:
    """A file of sources and one of targets, a line for a line. Errors: ``RecipeError``."""
    if inputs.keys is not None:
        raise RecipeError("--keys goes with one .jsonl file that holds both sides")
    source, target = map(absolute, inputs.names)
    return CorpusSettings(source=source, target=target)


def grouped_corpus(about: dict[str, Any], pattern: str | None) -> CorpusSettings:
    """Errors: ``RecipeError`` for a pattern that tells no groups."""
    try:
        return CorpusSettings.model_validate({**about, "group_pattern": pattern})
    except ValidationError as error:
        why = error.errors(include_input=False, include_url=False)[0]["msg"]
        raise RecipeError(f"--groups {pattern}: {why.removeprefix('Value error, ')}") from None


def with_label_ends(corpus: CorpusSettings, label_ends: str) -> CorpusSettings:
    """A corpus of trees whose labels end there. Errors: ``RecipeError`` for too many characters."""
    try:
        return CorpusSettings.model_validate(corpus.model_dump() | {"label_ends": label_ends})
    except ValidationError as error:
        why = error.errors(include_input=False, include_url=False)[0]["msg"]
        raise RecipeError(f"--label-ends {shortened(label_ends, 40)}: {why}") from None
