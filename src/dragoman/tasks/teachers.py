"""The teachers of a run: finished translators whose vocabularies and predictions it learns."""

from __future__ import annotations

from pathlib import Path

import torch

from dragoman.base.errors import RunError
from dragoman.engine.ensemble import readers_of
from dragoman.models.ensemble import Ensemble
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import Run, vocabulary_name
from dragoman.tasks import catalogue


def teacher_runs(recipe: Recipe) -> list[Run]:
    """Open the teachers that a recipe names.

    Errors: ``RunError`` if a teacher is missing, is not a translator, or reads or writes with
    another vocabulary than the first teacher.
    """
    runs: list[Run] = []
    for teacher in recipe.data.teachers:
        folder = Path(teacher.run)
        if not folder.is_dir():
            raise RunError(
                f"the teacher {folder} is missing. Bring the folder back, or set "
                "training.teaching = 0 to learn without it"
            )
        run = catalogue.Run.open(folder)
        run.require_task("translation", "which has no predictions to learn")
        runs.append(run)
    readers_of(runs)
    return runs


def take_vocabularies(recipe: Recipe, folder: Path) -> None:
    """Copy the vocabularies of the first teacher into the new run ``folder``.

    Errors: ``RunError``, also for a recipe with other settings of the text.
    """
    first = teacher_runs(recipe)[0]
    if first.recipe.text != recipe.text:
        raise RunError(
            f"the section text differs from that of the teacher {first.folder}, but a student uses "
            "the vocabularies of its teacher. Use the same section text"
        )
    forms = first.forms._asdict()
    for side in first.recipe.spec.texts:
        forms[side].save(folder / vocabulary_name(recipe, side))


def teachers_of(recipe: Recipe, device: torch.device) -> Ensemble:
    """Return the teachers as one model that predicts tokens: the mean of their distributions."""
    runs = teacher_runs(recipe)
    networks = [run.model().to(device) for run in runs]
    return Ensemble(networks, readers_of(runs))  # type: ignore[arg-type]
