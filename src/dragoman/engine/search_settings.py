"""Search settings with changes merged in; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import RecipeError
from dragoman.recipe import Recipe
from dragoman.search.settings import SearchSettings


def for_test_set(settings: SearchSettings, changes: Sequence[str] = ()) -> SearchSettings:
    """How a test set is searched: for the best output alone, with ``key=value`` merged in.

    Errors: ``RecipeError``.
    """
    return parse_search(settings, [*changes, "n_best=1"])


def with_beams(settings: SearchSettings, beam: int | None, n_best: int | None) -> SearchSettings:
    """Settings with another beam or n-best; a beam that is not given is widened to hold the n best.

    Errors: ``RecipeError`` where the two do not agree.
    """
    changes = [] if beam is None else [f"beam={beam}"]
    if n_best is not None:
        changes.append(f"n_best={n_best}")
        if beam is None and settings.sampling is None and n_best > settings.beam:
            changes.append(f"beam={n_best}")
    return parse_search(settings, changes) if changes else settings


def parse_search(settings: SearchSettings, changes: Sequence[str]) -> SearchSettings:
    """Search settings with ``key=value`` merged in. Errors: ``RecipeError``."""
    for change in changes:
        if "=" not in change:
            raise RecipeError(f"--set {change!r} is not of the form key=value: beam=8, say")
    given = Recipe(search=settings).model_dump(mode="json", exclude_none=True)
    return Recipe.parse(given, [f"search.{change}" for change in changes], "how to search").search
