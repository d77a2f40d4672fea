"""Every task at work, by its spec."""

from __future__ import annotations

from dragoman.specs.spec import Spec
from dragoman.tasks.classification.runtime import ClassificationRuntime
from dragoman.tasks.codes.runtime import CodesRuntime
from dragoman.tasks.detection.runtime import DetectionRuntime
from dragoman.tasks.language_model.runtime import LanguageModelRuntime
from dragoman.tasks.masked.runtime import MaskedRuntime
from dragoman.tasks.painting.runtime import PaintingRuntime
from dragoman.tasks.parsing.runtime import ParsingRuntime
from dragoman.tasks.shared.runtime import Runtime
from dragoman.tasks.tagging.runtime import TaggingRuntime
from dragoman.tasks.translation.runtime import TranslationRuntime

RUNTIMES: dict[str, Runtime] = {
    runtime.spec.name: runtime
    for runtime in (
        TranslationRuntime(),
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


def runtime_of(spec: Spec) -> Runtime:
    """What a task adds to its spec."""
    return RUNTIMES[spec.name]
