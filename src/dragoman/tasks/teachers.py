"""The teachers of a run: finished translators whose vocabularies and predictions it learns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from dragoman.base.errors import RunError
from dragoman.engine.ensemble import readers_of
from dragoman.models.ensemble import Ensemble
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.tasks import catalogue


def teacher_runs(recipe: Recipe) -> list[Run]:
    """Open the teachers that a recipe names.

    Errors: ``RunError`` if a teacher is missing, or the recipe has other settings of the text than
    the first one, and those of ``check_teachers``.
    """
    runs: list[Run] = []
    for teacher in recipe.data.teachers:
        folder = Path(teacher.run)
        if not folder.is_dir():
            raise RunError(
                f"the teacher {folder} is missing. Bring the folder back, or set "
                "training.teaching = 0 to learn without it"
            )
        runs.append(catalogue.Run.open(folder))
    check_teachers(runs)
    if runs and runs[0].recipe.text != recipe.text:
        raise RunError(
            f"the section text differs from that of the teacher {runs[0].folder}, but a student "
            "uses the vocabularies of its teacher. Use the same section text"
        )
    return runs


def check_teachers(runs: Sequence[Run]) -> None:
    """Check that runs can teach together.

    Errors: ``RunError`` if one of them is not a translator of text, or writes with another
    vocabulary than the first.
    """
    for run in runs:
        run.require_task("translation", "which cannot teach a translator")
        if run.task.reads_files:
            raise RunError(
                f"{run.folder} is a {run.task.called}, which reads files. Give translators of text"
            )
    if runs:
        readers_of(runs)


def teachers_of(recipe: Recipe, device: torch.device) -> Ensemble:
    """Return the teachers as one model that predicts tokens: the mean of their distributions."""
    runs = teacher_runs(recipe)
    networks = [run.model().to(device) for run in runs]
    return Ensemble(networks, readers_of(runs))  # type: ignore[arg-type]
