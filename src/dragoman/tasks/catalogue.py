"""Maps the name of each task to its runtime (``tasks/NAME/runtime.py``) and its spec, and defines
the classes ``Recipe`` and ``Run``, which accept every task."""

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
    """Return the builders of recipes for recordings. Runs that transcribe have the task
    translation."""
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
    """Return the runtime of the task that a spec describes."""
    return RUNTIMES[spec.name]


class Recipe(recipe.Recipe):
    """The complete settings of a run. ``Recipe.load`` reads a recipe file; ``save`` writes one with
    all settings."""

    tasks = TASKS


class Run(run.Run):
    """An open run folder. Each of its files is read when it is first needed."""

    recipes: ClassVar[type[recipe.Recipe]] = Recipe

    def open_predictor(self, settings: Any = None, ensemble: Sequence[run.Run] = ()) -> Any:
        """Return the predictor of the run, as ``dragoman.load`` does."""
        return runtime_of(self.task).open(self, settings, ensemble)

    def predictor(self, settings: Any = None) -> Any:
        """Return the plain predictor of the run, without what ``open_predictor`` adds for
        translation."""
        return runtime_of(self.task).parts().predictor(self, settings)


def open_run(folder: Path, task: str | None = None, lacks: str = "") -> Run:
    """Open a run for use, and log one line if it has hardly learned its task. Errors: ``RunError``,
    also if the run has another task than ``task``; ``lacks`` completes that message, for example
    "which does not label"."""
    run = Run.open(folder)
    if problems := run.verdict():
        logging.getLogger("dragoman").warning("%s: %s", folder, " ".join(problems))
    if task is not None:
        run.require_task(task, lacks)
    return run
