"""The commands (verbs), demos, endpoints and public names of all tasks.

``catalogue.py`` lists the code that trains, measures and opens the runs of each task. Verbs import
it to open runs, so if it also listed the verbs, they would import themselves.

Each function imports what it returns when it is called, so that ``dragoman --help`` imports no
endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.console.demo_files import Demo
    from dragoman.serving.service.endpoints import ServedTasks
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

TRAINED_AS: dict[str, str] = {
    "translation": "the default",
    "language-model": "which continues texts",
    "masked": "which fills in blanks",
    "classification": "which assigns labels",
    "parsing": "which builds constituency trees",
    "tagging": "which tags words",
    "detection": "which finds boxes in pictures",
    "codes": "which makes the codes that a painter writes",
    "painting": "which paints pictures from captions",
}
"""The task names that ``--task`` accepts, each with a short description."""

NAMES: dict[str, tuple[str, ...]] = {
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
}
"""The names that the package ``dragoman`` has of tasks, by the modules that define them."""

NOT_COMPARED = {
    "detection": ("detectors", "boxes.json"),
    "codes": ("painters and their codes", "test.tsv"),
    "painting": ("painters and their codes", "test.tsv"),
}
"""Tasks whose runs have no significance test: what a message calls such runs, and the name of a
typical file to evaluate one on."""


VERBS: tuple[tuple[str, ...], ...] = (
    ("tasks.translation.align_verb.shortlist",),
    (
        "tasks.translation.verb.translate", "tasks.transcription.verb.transcribe",
        "tasks.language_model.verb.write", "tasks.classification.verb.classify",
        "tasks.tagging.verb.tag", "tasks.masked.verb.fill", "tasks.parsing.verb.parse",
        "tasks.detection.verb.detect", "tasks.painting.verb.paint",
    ),
    ("tasks.translation.align_verb.align",),
)  # fmt: skip
"""The places of verbs in three groups, each in the order of ``dragoman --help``: those that prepare
a finished run for use, those that use a run, and those that inspect pairs."""


def demos() -> dict[str, Demo]:
    """The demos of ``dragoman demo --task``, by their names."""
    from dragoman.tasks.classification import demo as classify
    from dragoman.tasks.detection import demo as detect
    from dragoman.tasks.language_model import verb as write
    from dragoman.tasks.masked import verb as fill
    from dragoman.tasks.painting import verb as paint
    from dragoman.tasks.parsing import verb as parse
    from dragoman.tasks.transcription import demo as transcribe
    from dragoman.tasks.translation import demo as translate

    return {
        "translate": translate.DEMO,
        "write": write.DEMO,
        "fill": fill.DEMO,
        "classify": classify.TEXTS_DEMO,
        "parse": parse.DEMO,
        "transcribe": transcribe.DEMO,
        "classify-picture": classify.PICTURES_DEMO,
        "detect": detect.DEMO,
        "paint": paint.DEMO,
    }


def serving_tasks() -> ServedTasks:
    """The classes of runs that a server can serve, and the endpoints of all tasks. This needs the
    extra ``serve``."""
    from dragoman.serving.service.endpoints import ServedTasks
    from dragoman.tasks.classification import endpoint as classify
    from dragoman.tasks.detection import endpoint as detect
    from dragoman.tasks.language_model import endpoint as writing
    from dragoman.tasks.language_model import served as served_language_model
    from dragoman.tasks.masked import endpoint as fill
    from dragoman.tasks.painting import endpoint as paint
    from dragoman.tasks.parsing import endpoint as parse
    from dragoman.tasks.tagging import endpoint as tag
    from dragoman.tasks.transcription import endpoint as transcribe
    from dragoman.tasks.translation import documents_endpoint as documents
    from dragoman.tasks.translation import endpoint as translating
    from dragoman.tasks.translation import libretranslate
    from dragoman.tasks.translation import lines_endpoint as lines
    from dragoman.tasks.translation import served as served_translator

    return ServedTasks(
        runs=(
            served_translator.ServedTranslator, served_language_model.ServedLanguageModel,
            fill.ServedFillMask, classify.ServedClassifier,
            classify.ServedFileClassifier, parse.ServedParser, tag.ServedTagger,
            transcribe.ServedTranscriber, detect.ServedDetector, lines.ServedLines,
            paint.ServedPainter,
        ),
        endpoints=(
            libretranslate.endpoints, documents.endpoints, translating.endpoints,
            writing.endpoints, fill.fill, classify.classify, parse.parse,
            tag.tag, transcribe.endpoints, detect.detect, lines.translate_pictures,
            paint.images,
        ),
    )  # fmt: skip
