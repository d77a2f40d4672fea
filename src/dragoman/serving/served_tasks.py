"""Which runs are served and where each is asked: one line a task and kind of source."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.errors import RunError
from dragoman.runs.run import Run
from dragoman.serving.classify import endpoint as classifying
from dragoman.serving.classify import served_classifier, served_files
from dragoman.serving.detect import served_detector
from dragoman.serving.fill import served_fill_mask
from dragoman.serving.lines import served_lines
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.paint import served_painter
from dragoman.serving.parse import served_parser
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service
from dragoman.serving.tag import served_tagger
from dragoman.serving.transcribe import endpoint as transcribing
from dragoman.serving.transcribe import served_transcriber
from dragoman.serving.translate import endpoint as translating
from dragoman.serving.translate import served_translator
from dragoman.serving.write import endpoint as writing
from dragoman.serving.write import served_language_model

SERVED: tuple[tuple[type[ServedRun], Callable[[Service], Endpoints]], ...] = (
    (served_translator.ServedTranslator, translating.endpoints),
    (served_language_model.ServedLanguageModel, writing.endpoints),
    (served_fill_mask.ServedFillMask, served_fill_mask.endpoints),
    (served_classifier.ServedClassifier, classifying.endpoints),
    (served_files.ServedFileClassifier, classifying.endpoints),
    (served_parser.ServedParser, served_parser.endpoints),
    (served_tagger.ServedTagger, served_tagger.endpoints),
    (served_transcriber.ServedTranscriber, transcribing.endpoints),
    (served_detector.ServedDetector, served_detector.endpoints),
    (served_lines.ServedLines, served_lines.endpoints),
    (served_painter.ServedPainter, served_painter.endpoints),
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
