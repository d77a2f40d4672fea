"""This module reads recipes before they are checked: text, paths and ``--set`` changes; and it
words the messages about mistakes.
"""

from __future__ import annotations

import copy
import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from dragoman.base.errors import RecipeError, RunError
from dragoman.base.reading import near_files, read_bytes
from dragoman.base.wording import shorten
from dragoman.data.files.corpus_settings import CORPUS_FILES
from dragoman.models.settings import KINDS
from dragoman.sources.file_examples import SOURCES

_SHIPPED = resources.files("dragoman") / "runs" / "recipe" / "shipped"
"""The folder of the recipes that come with the program."""
_MAX_BYTES = 1 << 20
"""The most bytes of a recipe file."""

_MOST_DOTS = 100
"""The most dots in one line of TOML. Python needs quadratic time for the parts of a key, and no
setting is more than a few sections deep."""

_KINDS_OF: Mapping[str, Mapping[str, type[BaseModel]]] = {
    "model": KINDS, "source": SOURCES,
}  # fmt: skip
"""The sections that have several kinds."""

_GONE = {
    "training.spec_augment.warp": None,
    "training.picture_augment.operations": None,
    "training.picture_augment.magnitude": None,
    "plan.slices": 1,
}
"""Settings that were removed before 0.1.0, with the only value that may be ignored; None: any.
All runs of commit c1266482 have them."""

_PATHS = {*CORPUS_FILES, "prepared", "codes", "run"}
"""The settings that name a file or a folder."""

_TOLD, _SHOWN = 20, 200
"""The most mistakes of a recipe in one message, and the most characters of each."""


def shipped_recipes() -> list[str]:
    """Return the names of the recipes that come with the program."""
    return sorted(
        f.name.removesuffix(".toml") for f in _SHIPPED.iterdir() if f.name.endswith(".toml")
    )


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text. Errors: ``ValueError`` for text that is not TOML, or has
    too many dots in one line; ``RecursionError`` for lists that are nested too deeply."""
    for number, line in enumerate(text.splitlines(), 1):
        if (dots := line.count(".")) > _MOST_DOTS:
            raise ValueError(
                f"line {number:,} has {dots:,} dots, and {_MOST_DOTS} are allowed in one line. "
                "Write a long list on several lines"
            )
    return tomllib.loads(text)


def read_text(path: Path) -> str:
    """Return the text of a recipe file. Errors: ``RecipeError`` if it cannot be read as text."""
    if not path.exists():
        raise RecipeError(
            f"there is no recipe {path}. Included recipes: {', '.join(shipped_recipes())}"
        )
    try:
        return read_bytes(path, _MAX_BYTES).decode("utf-8")
    except (RunError, UnicodeDecodeError) as error:
        raise RecipeError(f"recipe {path}: {error}") from error


def text_of_shipped(name: str) -> str:
    """Return the text of a recipe that comes with the program. Errors: ``RecipeError``."""
    names = shipped_recipes()
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)[:1] or near_files(name)
        hint = f" Did you mean {near[0]}?" if near else ""
        if Path(name).is_dir():
            raise RecipeError(f"{name} is a folder, not a recipe. Give a file")
        if Path(name).exists():
            raise RecipeError(
                f"{name} is not a regular file: a pipe or a device can be read only once, but "
                "training reads its text several times. Write it to a file first"
            )
        if os.sep in name:
            raise RecipeError(f"there is no file or folder {name}.{hint}")
        raise RecipeError(
            f"{name!r} is neither a file, nor a folder, nor an included recipe.{hint} Included "
            f"recipes: {', '.join(names)}"
        )
    return (_SHIPPED / f"{name}.toml").read_text(encoding="utf-8")


def map_paths(values: Mapping[str, Any], change: Any) -> dict[str, Any]:
    """Apply ``change`` to every path under ``data``, and to the run of ``painting``; no other
    section names files."""

    def map_within(value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            return {name: map_within(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [map_within(item, "") for item in value]
        is_path = key in _PATHS and isinstance(value, str)
        return change(value) if is_path and not (key == "prepared" and "://" in value) else value

    return {
        name: map_within(section, name) if name in ("data", "painting") else section
        for name, section in values.items()
    }


def merge(values: Mapping[str, Any], change: str) -> dict[str, Any]:
    """Merge ``section.key=value`` into ``values``; the value is TOML, or else a plain string.

    Errors: ``RecipeError`` for a change of another form.
    """
    key, equals, raw = change.partition("=")
    if not equals or not key.strip():
        raise RecipeError(f"--set {change!r} is not of the form section.key=value")
    try:
        value = parse_toml(f"value = {raw}")["value"]
    except (ValueError, RecursionError):
        value = raw
    merged = dict(values)
    inner = merged
    *sections, last = key.strip().split(".")
    for section in sections:
        below = inner.get(section, {})
        if not isinstance(below, Mapping):
            raise RecipeError(f"--set {change}: {section!r} is a value, not a section")
        inner[section] = dict(below)
        inner = inner[section]
    inner[last] = value
    return merged


def without_gone(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe that the program wrote without the settings that no longer exist: they
    affected the training of a model, not its use. In a recipe that a person wrote they are
    errors."""
    if "format" not in values:
        return dict(values)
    kept = copy.deepcopy(dict(values))
    for key, only in _GONE.items():
        *sections, last = key.split(".")
        inner: Any = kept
        for section in sections:
            inner = inner.get(section) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and only in (None, inner.get(last)):
            inner.pop(last, None)
    return kept


def sets(changes: Sequence[str], key: str) -> bool:
    """Return True if one of ``changes``, in the form of ``merge``, sets ``key`` or its section."""
    names = (change.partition("=")[0].strip() for change in changes)
    return any(key == name or key.startswith(f"{name}.") for name in names)


def explain(error: ValidationError, recipe: type[BaseModel], where: str) -> str:
    """Return one line per mistake: key, problem, and the nearest key or the allowed values."""
    lines, problems = [], error.errors()
    for section in _KINDS_OF:
        if mixed := _mixed_kinds(section, problems):
            lines.append(mixed)
            problems = [problem for problem in problems if problem["loc"][:1] != (section,)]
    for problem in problems[:_TOLD]:
        location = [part for part in problem["loc"] if isinstance(part, str | int)]
        # pydantic adds the kind of model or source after the section that contains it.
        has_kind = len(location) > 1 and location[1] in _KINDS_OF.get(str(location[0]), ())
        written = location[:1] + location[2:] if has_kind else location
        key = shorten(".".join(str(part) for part in written), _SHOWN)
        if key in _GONE:
            lines.append(f"{key!r} is no longer a setting: leave it out")
        elif problem["type"] == "extra_forbidden":
            known = sorted(_section(recipe, location[:-1]))
            near = difflib.get_close_matches(str(location[-1]), known, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(known)
            lines.append(f"unknown key {key!r}; {hint}")
        elif problem["type"] == "missing":
            lines.append(f"{key!r} is missing")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            given = problem["input"]
            is_simple = not isinstance(given, dict | list | tuple)
            shown = f" (given: {shorten(repr(given), _SHOWN)})" if is_simple else ""
            lines.append(f"{key}: {message}{shown}" if key else f"{message}{shown}")
    return f"{where}: " + "\n  ".join(lines)


def _mixed_kinds(section: str, problems: Sequence[Mapping[str, Any]]) -> str:
    """Return one line if the kind of a section was changed and its other keys are still those of
    another."""
    kinds = _KINDS_OF[section]
    unknown = [
        problem["loc"][1:]
        for problem in problems
        if problem["type"] == "extra_forbidden"
        and problem["loc"][0] == section
        and len(problem["loc"]) == 3
    ]
    if len(unknown) < 2:
        return ""
    kind, keys = unknown[0][0], [str(key) for _, key in unknown]
    others = [name for name, other in kinds.items() if other.model_fields.keys() >= set(keys)]
    if not others:
        return ""
    return (
        f"{section}.kind is {kind!r}, but {', '.join(keys)} are keys of {others[0]!r}. Give the "
        f"keys of {kind!r} alone, or leave the kind as it is"
    )


def _section(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the field names of the settings at ``location`` within ``model``."""
    for before, part in zip((None, *location), location, strict=False):
        if (kinds := _KINDS_OF.get(str(before))) is not None and part in kinds:
            model = kinds[str(part)]
            continue
        if isinstance(part, int) or part not in model.model_fields:
            continue
        nested = settings_in(model.model_fields[part].annotation)
        if nested is not None:
            model = nested
    return list(model.model_fields)


def settings_in(annotation: Any) -> type[BaseModel] | None:
    """Return the settings class inside an annotation such as ``CorpusSettings | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, UnionType, tuple, list):
        for inner in get_args(annotation):
            nested = settings_in(inner)
            if nested is not None:
                return nested
    return None
