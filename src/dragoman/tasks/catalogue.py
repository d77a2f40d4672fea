"""Every task by its name in recipes (``tasks/NAME/runtime.py``, with its spec), and the classes of
recipes and runs that can have any of these tasks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from dragoman.runs import run
from dragoman.runs.recipe import recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.tasks.classification.runtime import ClassificationRuntime
from dragoman.tasks.codes.runtime import CodesRuntime
from dragoman.tasks.detection.runtime import DetectionRuntime
from dragoman.tasks.language_model.runtime import LanguageModelRuntime
from dragoman.tasks.masked.runtime import MaskedRuntime
from dragoman.tasks.painting.runtime import PaintingRuntime
from dragoman.tasks.parsing.runtime import ParsingRuntime
from dragoman.tasks.shared.runtime import Builders, Runtime
from dragoman.tasks.tagging.runtime import TaggingRuntime
from dragoman.tasks.translation.runtime import TranslationRuntime


def of_recordings() -> Builders:
    """What makes recipes of recordings: a run that transcribes is of the task translation."""
    from dragoman.tasks.transcription.sizes import SpokenBuilder

    return (SpokenBuilder,)


RUNTIMES: dict[str, Runtime] = {
    runtime.spec.name: runtime
    for runtime in (
        TranslationRuntime(of_recordings),
        LanguageModelRuntime(),
        MaskedRuntime(),
        ClassificationRuntime(),
        ParsingRuntime(),
        TaggingRuntime(),
        DetectionRuntime(),
        CodesRuntime(),
        PaintingRuntime(),
    )
}
TASKS: dict[str, Spec] = {name: runtime.spec for name, runtime in RUNTIMES.items()}


def runtime_of(spec: Spec) -> Runtime:
    """What a task adds to its spec."""
    return RUNTIMES[spec.name]


class Recipe(recipe.Recipe):
    """The complete settings of a run. ``Recipe.load`` reads a recipe file; ``save`` writes one with
    all settings."""

    tasks = TASKS


class Run(run.Run):
    """A run folder, opened. Parts are read when first asked for."""

    recipes: ClassVar[type[recipe.Recipe]] = Recipe

    def opened(self, settings: Any = None, ensemble: Sequence[run.Run] = ()) -> Any:
        """The predictor of the run, as ``dragoman.load`` gives it."""
        return runtime_of(self.task).open(self, settings, ensemble)

    def predictor(self, settings: Any = None) -> Any:
        """The predictor of the run as its task opens it, without what ``opened`` adds."""
        return runtime_of(self.task).parts().predictor(self, settings)


def opened_run(folder: Path, task: str | None = None, lacks: str = "") -> Run:
    """Open a run for use, and log one line if it has hardly learned its task. Errors:
    ``RunError``, also for a run of another ``task``; ``lacks`` names what it lacks."""
    run = Run.open(folder)
    if said := run.verdict():
        logging.getLogger("dragoman").warning("%s: %s", folder, " ".join(said))
    if task is not None:
        run.require_task(task, lacks)
    return run
