"""Writes settings.md from the settings classes: python docs/settings.py > docs/settings.md

The docstring under a field is its help text; a test holds the page to the classes.
"""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dragoman.console.options import help_texts
from dragoman.models.settings import KINDS
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.recipe_text import settings_in
from dragoman.sources.file_examples import SOURCES

_HEAD = """\
<!-- Generated: python docs/settings.py > docs/settings.md. Do not edit this page. -->

# Settings

This page lists every setting of a recipe, with its default.

In a recipe file, `training.schedule.peak` is written as `peak` in the section
`[training.schedule]`. On the command line, it is `--set training.schedule.peak=2e-3`. `dragoman
translate` and `dragoman evaluate` accept only settings of `search`, without the prefix:
`--set beam=8`. A setting that you leave out has its default value; the `recipe.toml` of a run
contains all settings. *The paper* is [Attention Is All You Need](https://arxiv.org/abs/1706.03762).
"""


def settings_page() -> str:
    """The whole page."""
    return _HEAD + "".join(_section(Recipe, ""))


def _section(settings: type[BaseModel], path: str) -> list[str]:
    about = " ".join((settings.__doc__ or "").split())
    title = path.removesuffix(".") or "Top level"
    if settings in (*KINDS.values(), *SOURCES.values()):
        title += f" of kind {settings.model_fields['kind'].default}"
    lines = [f"\n## {title}\n\n{about}\n"]
    inner: list[tuple[type[BaseModel], str]] = []
    rows: list[str] = []
    helps = help_texts(settings)
    for name, field in settings.model_fields.items():
        kinds = _kinds(field.default)
        if kinds:
            inner += [(kind, f"{path}{name}.") for kind in kinds]
            continue
        found = settings_in(field.annotation)
        if found is None or not _is_section(field):
            rows.append(_row(f"{path}{name}", field, helps.get(name, "")))
        if found is not None and found not in [settings for settings, _ in inner]:
            inner.append((found, f"{path}{name}."))
    if rows:
        lines.append("\n| setting | default | what it does |\n|---|---|---|\n" + "".join(rows))
    for found, below in inner:
        lines += _section(found, below)
    return lines


def _kinds(default: Any) -> list[type[BaseModel]]:
    """All classes that may stand where the default is one of several kinds."""
    families = ([*KINDS.values()], [*SOURCES.values()])
    return next((kinds for kinds in families if type(default) in kinds), [])


def _row(path: str, field: FieldInfo, help_text: str) -> str:
    help_text = " ".join(help_text.split()).replace("|", "\\|")
    choices = _choices(field.annotation)
    if len(choices) > 1:
        help_text += f" One of {', '.join(f'`{choice}`' for choice in choices)}."
    help_text += _range(field)
    return f"| `{path}` | {_written(field)} | {help_text} |\n"


def _range(field: FieldInfo) -> str:
    """ " From 1 to 256.", where it is a number."""
    limits = {
        word: value
        for limit in field.metadata
        for word in ("ge", "gt", "le", "lt")
        if (value := getattr(limit, word, None)) is not None
    }
    if not limits:
        return ""
    if "ge" in limits and limits["ge"] == limits.get("le"):
        return f" Must be {limits['ge']:,}."
    low = f"From {limits['ge']:,}" if "ge" in limits else f"Above {limits['gt']:,}"
    if "le" in limits:
        return f" {low}{' to' if 'ge' in limits else ', at most'} {limits['le']:,}."
    most = limits["lt"]
    return f" {low}, below {f'2^{most.bit_length() - 1}' if most >= 2**53 else f'{most:,}'}."


def _written(field: FieldInfo) -> str:
    """The default as TOML has it; what TOML cannot say is left out of a recipe."""
    if field.is_required():
        return "required"
    value: Any = field.default
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    return f"`{value}`"


def _choices(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return next((found for a in get_args(annotation) if (found := _choices(a))), ())


def _is_section(field: FieldInfo) -> bool:
    """Whether it is there without being asked for, so that its default says nothing."""
    return isinstance(field.default, BaseModel)


if __name__ == "__main__":
    print(settings_page(), end="")
