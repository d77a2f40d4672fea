"""The recipe that files get, with the options of ``dragoman train`` by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.runs.prepare import Say
from dragoman.runs.run import Run
from dragoman.sizing.options import TrainOptions
from dragoman.tasks import from_files
from dragoman.tasks.catalogue import Recipe


def recipe_of(
    names: Sequence[str],
    *,
    changes: Sequence[str] = (),
    learns: bool = True,
    base: str | None = None,
    start_from: Run | None = None,
    take: str | None = None,
    say: Say = print,
    **options: Any,
) -> tuple[Recipe, float | None]:
    """``base``: a recipe for the files. ``start_from``, ``take``: a run, and the part of it."""
    from_ = start_from.folder if start_from else None
    given = TrainOptions(
        inputs=list(names), set_=list(changes), recipe=base, from_=from_, init_part=take, **options
    )
    chosen = from_files.recipe_of(given, say, learns=learns)
    return chosen.recipe, chosen.epochs
