"""Which runs are served and where each is asked: one line a task and kind of source."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.errors import RunError
from dragoman.runs.run import Run
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Endpoints, Service
from dragoman.tasks.classification import endpoint as classifying
from dragoman.tasks.classification import served as served_classifier
from dragoman.tasks.classification import served_files
from dragoman.tasks.detection import endpoint as detect
from dragoman.tasks.language_model import endpoint as writing
from dragoman.tasks.language_model import served as served_language_model
from dragoman.tasks.masked import endpoint as fill
from dragoman.tasks.painting import endpoint as paint
from dragoman.tasks.parsing import endpoint as parse
from dragoman.tasks.tagging import endpoint as tag
from dragoman.tasks.transcription import endpoint as transcribing
from dragoman.tasks.transcription import served as served_transcriber
from dragoman.tasks.translation import endpoint as translating
from dragoman.tasks.translation import lines_endpoint as lines
from dragoman.tasks.translation import served as served_translator

SERVED: tuple[tuple[type[ServedRun], Callable[[Service], Endpoints]], ...] = (
    (served_translator.ServedTranslator, translating.endpoints),
    (served_language_model.ServedLanguageModel, writing.endpoints),
    (fill.ServedFillMask, fill.endpoints),
    (served_classifier.ServedClassifier, classifying.endpoints),
    (served_files.ServedFileClassifier, classifying.endpoints),
    (parse.ServedParser, parse.endpoints),
    (tag.ServedTagger, tag.endpoints),
    (served_transcriber.ServedTranscriber, transcribing.endpoints),
    (detect.ServedDetector, detect.endpoints),
    (lines.ServedLines, lines.endpoints),
    (paint.ServedPainter, paint.endpoints),
)
"""What holds such a run, and its endpoints."""

NOT_SERVED = ("codes",)
"""Tasks whose runs are asked of nothing: a painter keeps what it needs of them."""


def open_run(run: Run, settings: ServeSettings, name: str) -> ServedRun:
    """Load a run for serving. Errors: ``RunError``, also for a run that is not served."""
    for kind, _ in SERVED:
        if kind.takes(run):
            return kind.open(run, settings, name)
    if run.task.name in NOT_SERVED:
        raise RunError(
            f"{run.folder} is a {run.task.called}, which the server does not take; from the "
            f"command line: {run.use}"
        )
    raise RunError(
        f"{run.folder} reads {run.task.noun}, and the server takes texts; from the command "
        f"line: {run.use}"
    )
