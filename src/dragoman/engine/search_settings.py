"""Merges changes into search settings. This module does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from dragoman.base.errors import RecipeError
from dragoman.base.settings import Settings
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.recipe_text import explain, merge
from dragoman.search.settings import SearchSettings

_WHERE = "how to search"


class _Section(Settings):
    """The section ``search`` of a recipe, so that errors are reported like those of recipes."""

    search: SearchSettings


def search_of(recipe: Recipe, changes: Sequence[str]) -> SearchSettings:
    """Merge ``key=value`` changes into the search settings of a run, and check the result for its
    task.

    Errors: ``RecipeError``.
    """
    settings = parse_search(recipe.search, changes)
    try:
        recipe.spec.check_search(settings)
    except ValueError as error:
        raise RecipeError(f"{_WHERE}: {error}") from None
    return settings


def for_test_set(recipe: Recipe, changes: Sequence[str] = ()) -> SearchSettings:
    """Return the search settings for a test set: only the best output, with ``key=value`` changes
    merged in.

    Errors: ``RecipeError``.
    """
    return search_of(recipe, [*changes, "n_best=1"])


def with_beams(settings: SearchSettings, beam: int | None, n_best: int | None) -> SearchSettings:
    """Return settings with another beam or n-best. If ``beam`` is None, it is widened to hold the n
    best.

    Errors: ``RecipeError`` if the two contradict each other.
    """
    changes = [] if beam is None else [f"beam={beam}"]
    if n_best is not None:
        changes.append(f"n_best={n_best}")
        if beam is None and settings.sampling is None and n_best > settings.beam:
            changes.append(f"beam={n_best}")
    return parse_search(settings, changes) if changes else settings


def parse_search(settings: SearchSettings, changes: Sequence[str]) -> SearchSettings:
    """Merge ``key=value`` changes into search settings. Errors: ``RecipeError``."""
    merged: dict[str, Any] = {"search": settings.model_dump(exclude_none=True)}
    for change in changes:
        if "=" not in change:
            raise RecipeError(f"--set {change!r} is not of the form key=value, such as beam=8")
        merged = merge(merged, f"search.{change}")
    try:
        return _Section.model_validate(merged).search
    except ValidationError as error:
        raise RecipeError(explain(error, _Section, _WHERE)) from None
