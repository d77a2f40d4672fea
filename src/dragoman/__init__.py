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
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.errors import DragomanError
    from dragoman.recipe import Recipe
    from dragoman.runs.run import Run
    from dragoman.search.settings import SamplingSettings, SearchSettings
    from dragoman.tasks.classification.labeller import ClassifiedText, Labeller
    from dragoman.tasks.detection.detector import Detection, Detector
    from dragoman.tasks.language_model.writer import Writer, Written
    from dragoman.tasks.masked.filler import Filled, Filler
    from dragoman.tasks.painting.painter import Judge, PaintedPicture, Painter
    from dragoman.tasks.parsing.parser import Parse, Parser
    from dragoman.tasks.tagging.tagger import Tagger
    from dragoman.tasks.translation.result import Translation
    from dragoman.tasks.translation.transcriber import Transcriber, Transcription
    from dragoman.tasks.translation.translator import Translator
    from dragoman.training.trainer import Outcome

__all__ = [
    "ClassifiedText",
    "Detection",
    "Detector",
    "DragomanError",
    "Filled",
    "Filler",
    "Judge",
    "Labeller",
    "Outcome",
    "PaintedPicture",
    "Painter",
    "Parse",
    "Parser",
    "Recipe",
    "Run",
    "SamplingSettings",
    "SearchSettings",
    "Tagger",
    "Transcriber",
    "Transcription",
    "Translation",
    "Translator",
    "TranslatorSettings",
    "Writer",
    "Written",
    "load",
    "train",
]

_HOME = {
    "ClassifiedText": "dragoman.tasks.classification.labeller",
    "Detection": "dragoman.tasks.detection.detector",
    "Detector": "dragoman.tasks.detection.detector",
    "DragomanError": "dragoman.errors",
    "Filled": "dragoman.tasks.masked.filler",
    "Filler": "dragoman.tasks.masked.filler",
    "Judge": "dragoman.tasks.painting.painter",
    "Labeller": "dragoman.tasks.classification.labeller",
    "Outcome": "dragoman.training.trainer",
    "PaintedPicture": "dragoman.tasks.painting.painter",
    "Painter": "dragoman.tasks.painting.painter",
    "Parse": "dragoman.tasks.parsing.parser",
    "Parser": "dragoman.tasks.parsing.parser",
    "Recipe": "dragoman.recipe",
    "Run": "dragoman.runs.run",
    "SamplingSettings": "dragoman.search.settings",
    "SearchSettings": "dragoman.search.settings",
    "Tagger": "dragoman.tasks.tagging.tagger",
    "Transcriber": "dragoman.tasks.translation.transcriber",
    "Transcription": "dragoman.tasks.translation.transcriber",
    "Translation": "dragoman.tasks.translation.result",
    "Translator": "dragoman.tasks.translation.translator",
    "TranslatorSettings": "dragoman.engine.settings",
    "Writer": "dragoman.tasks.language_model.writer",
    "Written": "dragoman.tasks.language_model.writer",
}


if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds a misspelt name

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)


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
    from dragoman.runs.run import Run
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
    from dragoman.runs.run import Run
    from dragoman.sizing.start_from import for_fine_tuning
    from dragoman.tasks.training import train as train_run

    begin = Run.open(start_from) if start_from is not None else None
    if begin is not None:
        own = "context" in recipe.plan.model_fields_set
        recipe = for_fine_tuning(recipe, begin.recipe, own_context=own)
    return train_run(recipe, Path(folder), start_from=begin, minutes=minutes, display=display)
