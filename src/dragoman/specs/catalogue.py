"""Every task by the name that a recipe gives it."""

from __future__ import annotations

from dragoman.specs.classification import CLASSIFICATION
from dragoman.specs.codes import CODES_TASK
from dragoman.specs.detection import DETECTION
from dragoman.specs.language_model import LANGUAGE_MODEL
from dragoman.specs.masked import MASKED
from dragoman.specs.painting import PAINTING
from dragoman.specs.parsing import PARSING
from dragoman.specs.spec import Spec
from dragoman.specs.tagging import TAGGING
from dragoman.specs.translation import TRANSLATION

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
