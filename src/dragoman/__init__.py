"""The Transformer of *Attention Is All You Need* as software that people use.

    import dragoman
    translator = dragoman.load("runs/demo")
    print(translator("The dog sleeps."))

    recipe = dragoman.Recipe.load("demo")
    dragoman.train(recipe, "runs/mine")

Names are imported when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.tasks.program import NAMES as _NAMES

if TYPE_CHECKING:
    from dragoman.base.errors import DragomanError as DragomanError
    from dragoman.engine.settings import TranslatorSettings as TranslatorSettings
    from dragoman.search.settings import SamplingSettings as SamplingSettings
    from dragoman.search.settings import SearchSettings as SearchSettings
    from dragoman.tasks.catalogue import Recipe as Recipe
    from dragoman.tasks.catalogue import Run as Run
    from dragoman.tasks.program import *  # noqa: F403, those of tasks
    from dragoman.training.trainer import Outcome as Outcome

_HOME = {
    "tasks.catalogue": ("Recipe", "Run"),
    "engine.settings": ("TranslatorSettings",),
    "base.errors": ("DragomanError",),
    "search.settings": ("SamplingSettings", "SearchSettings"),
    "training.trainer": ("Outcome",),
    **_NAMES,
}
"""The names that the package has, by the modules in which they are defined."""
_MODULES = {name: module for module, names in _HOME.items() for name in names}
__all__ = [*_MODULES, "load", "train"]

if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds a misspelt name

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"dragoman.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def load(
    run: str | Path,
    settings: TranslatorSettings | None = None,
    *,
    ensemble: str | Path | Sequence[str | Path] = (),
) -> Translator | Any:  # noqa: F405
    """Open a run folder of any task and make it ready to be asked: a run that translates gives a
    ``Translator``, one that labels a ``Labeller``, and so on.

    ``settings`` say how: precision, threads, what happens to long lines. ``ensemble``: a further
    run, or several, of any kinds of models, which translate together with it; all must write with
    the same vocabulary. At each step the mean of their probabilities decides.
    Errors: ``RunError`` (a ``DragomanError``) if it is no run, one that is damaged, or one that
    cannot translate together with the first.
    """
    from dragoman.tasks.catalogue import Run

    others = [ensemble] if isinstance(ensemble, str | Path) else ensemble
    return Run.open(run).open_predictor(settings, [Run.open(path) for path in others])


def train(
    recipe: Recipe,
    folder: str | Path,
    *,
    minutes: float | None = None,
    start_from: str | Path | None = None,
    display: bool = True,
) -> Outcome:
    """Train by a recipe into a new run folder.

    ``minutes`` replaces the recipe's number of updates. ``start_from`` is a run to
    fine-tune: its weights (the best so far), vocabulary and model replace those that the recipe
    describes.
    ``display`` shows progress on standard error.

    Errors: ``DataError`` for text that cannot be used, ``RunError`` for a folder that is a run
    already, ``TrainingError``, ``FileError``; all are a ``DragomanError``.
    """
    from dragoman.sizing.start_from import for_fine_tuning
    from dragoman.tasks.catalogue import Run
    from dragoman.tasks.training import train as train_run

    if start_from is None:
        return train_run(recipe, Path(folder), minutes=minutes, display=display)
    begin = Run.open(start_from)
    own = "context" in recipe.plan.model_fields_set
    tuned = for_fine_tuning(recipe, begin.recipe, own_context=own)
    return train_run(tuned, Path(folder), start_from=begin, minutes=minutes, display=display)
