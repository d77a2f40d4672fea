"""Every task by the name that a recipe gives it: the specs, ``tasks/NAME/spec.py``.

``tasks/catalogue.py`` lists what trains and predicts.
"""

from __future__ import annotations

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
