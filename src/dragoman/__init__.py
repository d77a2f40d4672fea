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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.catalogue import Recipe as Recipe
    from dragoman.catalogue import Run as Run
    from dragoman.engine.settings import TranslatorSettings as TranslatorSettings
    from dragoman.errors import DragomanError as DragomanError
    from dragoman.search.settings import SamplingSettings as SamplingSettings
    from dragoman.search.settings import SearchSettings as SearchSettings
    from dragoman.tasks.classification.labeller import ClassifiedText as ClassifiedText
    from dragoman.tasks.classification.labeller import Labeller as Labeller
    from dragoman.tasks.detection.detector import Detection as Detection
    from dragoman.tasks.detection.detector import Detector as Detector
    from dragoman.tasks.language_model.writer import Writer as Writer
    from dragoman.tasks.language_model.writer import Written as Written
    from dragoman.tasks.masked.filler import Filled as Filled
    from dragoman.tasks.masked.filler import Filler as Filler
    from dragoman.tasks.painting.painter import Judge as Judge
    from dragoman.tasks.painting.painter import PaintedPicture as PaintedPicture
    from dragoman.tasks.painting.painter import Painter as Painter
    from dragoman.tasks.parsing.parser import Parse as Parse
    from dragoman.tasks.parsing.parser import Parser as Parser
    from dragoman.tasks.tagging.tagger import Tagger as Tagger
    from dragoman.tasks.transcription.transcriber import Transcriber as Transcriber
    from dragoman.tasks.transcription.transcriber import Transcription as Transcription
    from dragoman.tasks.translation.result import Translation as Translation
    from dragoman.tasks.translation.translator import Translator as Translator
    from dragoman.training.trainer import Outcome as Outcome

_HOME = {
    "catalogue": ("Recipe", "Run"),
    "engine.settings": ("TranslatorSettings",),
    "errors": ("DragomanError",),
    "search.settings": ("SamplingSettings", "SearchSettings"),
    "tasks.classification.labeller": ("ClassifiedText", "Labeller"),
    "tasks.detection.detector": ("Detection", "Detector"),
    "tasks.language_model.writer": ("Writer", "Written"),
    "tasks.masked.filler": ("Filled", "Filler"),
    "tasks.painting.painter": ("Judge", "PaintedPicture", "Painter"),
    "tasks.parsing.parser": ("Parse", "Parser"),
    "tasks.tagging.tagger": ("Tagger",),
    "tasks.translation.result": ("Translation",),
    "tasks.transcription.transcriber": ("Transcriber", "Transcription"),
    "tasks.translation.translator": ("Translator",),
    "training.trainer": ("Outcome",),
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
) -> Translator:
    """Open a run folder and make it ready to translate.

    ``settings`` say how: precision, threads, what happens to long lines. ``ensemble``: a further
    run, or several, of any kinds of models, which translate together with it; all must write with
    the same vocabulary. At each step the mean of their probabilities decides.
    Errors: ``RunError`` (a ``DragomanError``) if it is no run, one that is damaged, or one that
    cannot translate together with the first.
    """
    from dragoman.catalogue import Run
    from dragoman.tasks.translation.translator import Translator

    others = [ensemble] if isinstance(ensemble, str | Path) else ensemble
    return Translator(Run.open(run), settings, ensemble=[Run.open(one) for one in others])


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
    from dragoman.catalogue import Run
    from dragoman.sizing.start_from import for_fine_tuning
    from dragoman.tasks.training import train as train_run

    if start_from is None:
        return train_run(recipe, Path(folder), minutes=minutes, display=display)
    begin = Run.open(start_from)
    own = "context" in recipe.plan.model_fields_set
    tuned = for_fine_tuning(recipe, begin.recipe, own_context=own)
    return train_run(tuned, Path(folder), start_from=begin, minutes=minutes, display=display)
