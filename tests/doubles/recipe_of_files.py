"""The recipe that files get, with the options of ``Inputs`` by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.catalogue import Recipe
from dragoman.sizing import from_files
from dragoman.sizing.inputs import Inputs


def recipe_of(
    names: Sequence[str],
    *,
    changes: Sequence[str] = (),
    learns: bool = True,
    base: str | None = None,
    **options: Any,
) -> tuple[Recipe, float | None]:
    """``base``: a recipe for the files."""
    inputs = Inputs(names, Recipe, recipe=base, **options)
    return from_files.recipe_of(inputs, changes=changes, learns=learns)
