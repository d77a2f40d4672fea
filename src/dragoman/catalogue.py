"""Every task by the name that a recipe gives it (``tasks/NAME/spec.py``), and the recipes and runs
that know them all.

``tasks/catalogue.py`` lists what trains and predicts.
"""

from __future__ import annotations

from typing import ClassVar

from dragoman import recipe
from dragoman.runs import run
from dragoman.specs.spec import Spec
from dragoman.tasks.classification.spec import CLASSIFICATION
from dragoman.tasks.codes.spec import CODES_TASK
from dragoman.tasks.detection.spec import DETECTION
from dragoman.tasks.language_model.spec import LANGUAGE_MODEL
from dragoman.tasks.masked.spec import MASKED
from dragoman.tasks.painting.spec import PAINTING
from dragoman.tasks.parsing.spec import PARSING
from dragoman.tasks.tagging.spec import TAGGING
from dragoman.tasks.translation.spec import TRANSLATION

TASKS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        TRANSLATION,
        LANGUAGE_MODEL,
        MASKED,
        CLASSIFICATION,
        PARSING,
        TAGGING,
        DETECTION,
        CODES_TASK,
        PAINTING,
    )
}


class Recipe(recipe.Recipe):
    """The complete settings of a run. ``Recipe.load`` reads a recipe file; ``save`` writes one with
    all settings."""

    tasks = TASKS


class Run(run.Run):
    """A run folder, opened. Parts are read when first asked for."""

    recipes: ClassVar[type[recipe.Recipe]] = Recipe
