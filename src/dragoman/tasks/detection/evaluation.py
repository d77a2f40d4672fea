"""Evaluation of a detector, during training and of a finished run.

Boxes are scored as COCO does (``tasks/detection/metrics.py``): all boxes count, whatever their
score.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.wording import plural
from dragoman.data.batches import Batch
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.boxes import Scene, scene_of
from dragoman.forms.form import Pair
from dragoman.pictures.labels import plain_table
from dragoman.runs.run import Run
from dragoman.tasks.detection.detector import THRESHOLD, DetectedPicture, Detector
from dragoman.tasks.detection.learning import boxes_batch, objective_of
from dragoman.tasks.detection.metrics import AveragePrecision, ScoredBox, average_precision
from dragoman.tasks.shared.evaluation import (
    EvaluationRequest,
    ExampleSet,
    PairsEvaluation,
    SearchReport,
    clock,
    sign,
)
from dragoman.tasks.shared.validation import TOKENS_AT_ONCE, PairsValidation

logger = logging.getLogger("dragoman")

SIGNATURE = "COCO:bbox|maxDets:100|points:101"
_COUNTED = "Boxes as COCO counts them (pycocotools): at most 100 for each picture and category."
_SIZES = {"s": "small (below 32 x 32 pixels)", "m": "medium", "l": "large (above 96 x 96)"}


class DetectionValidation(PairsValidation):
    """Scores on the dev set. ``loss`` is computed on all pictures, with noise boxes as in training
    (nats per symbol; for ``boxes.kind = "set"``, the training loss per query); ``ap50`` and ``ap``
    on the results of full searches for a part of the pictures."""

    without = "with more patches than the model has positions for"
    objective = staticmethod(objective_of)

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Batch]]:
        source, target = self.forms
        symbols, limits = self.forms.boxes.symbols, self.recipe.bounded_plan
        if not pairs or self.forms.source.read([pairs[0].source])[0].shape[0] > limits.max_source:
            return [], []
        together = max(1, TOKENS_AT_ONCE // target.longest_output(0, 0))
        batches = []
        for first in range(0, len(pairs), together):
            some = pairs[first : first + together]
            read = source.encode([pair.source for pair in some])
            written = target.encode([pair.target for pair in some])
            numbers = range(first, first + len(some))
            batches.append(boxes_batch(read, written, self.recipe, symbols, 0, numbers))
        return list(pairs), batches

    def search(self, pairs: Sequence[Pair]) -> tuple[dict[str, float], Sequence[str]]:
        detector, settings = Detector.over(self.engine()), self.search_settings()
        pictures = list(detector.stream((pair.source for pair in pairs), settings))
        scores = score_all(pairs, pictures).scores
        named = {name: scores.get(name, 0.0) for name in ("ap50", "ap")}
        return named, list(map(scene_text, pictures))


def score_all(pairs: Sequence[Pair], pictures: Sequence[DetectedPicture]) -> AveragePrecision:
    """Score the boxes that were found in pictures against the true boxes of ``pairs``, in the same
    order."""
    return average_precision(
        [scene_of(pair.target).boxes for pair in pairs],
        [[ScoredBox(box.box, box.score) for box in picture.detections] for picture in pictures],
    )


def scene_text(picture: DetectedPicture) -> str:
    """Return the boxes of a picture whose score is at least ``THRESHOLD``, as the text of the scene
    of an example."""
    boxes = tuple(detection.box for detection in picture.above(THRESHOLD))
    return str(Scene(picture.width, picture.height, boxes))


@dataclass(frozen=True)
class DetectionReport(SearchReport):
    """The boxes that a run found in some pictures, and their scores."""

    precision: AveragePrecision
    pictures: Sequence[DetectedPicture]

    @property
    def scores(self) -> dict[str, float]:
        """Scores by name, from 0 to 1."""
        return self.precision.scores

    def table(self) -> str:
        """Return the whole report as plain text."""
        of = self.precision
        rows: list[list[str | int | float]] = [
            [label, boxes, f"{100 * ap50:.1f}", f"{100 * ap:.1f}"]
            for label, (ap50, ap, boxes) in of.by_label.items()
        ]
        amount = self.amount(
            f"{plural(of.pictures, 'picture')}, {plural(of.boxes, 'box', 'boxes')}"
        )
        notes = [_COUNTED] if of.boxes else ["These pictures have no boxes, so nothing is scored."]
        if len(of.sizes) == 1:
            notes.append(
                f"All boxes are {_SIZES[of.sizes[0]]}, so AP by size is the same as AP and is "
                "left out."
            )
        table = plain_table(["category", "boxes", "AP50, %", "AP, %"], rows)
        return self.lines(amount, self.scores, [table, "", *notes])

    def details(self) -> dict[str, Any]:
        return {
            "scores": sign(self.scores, SIGNATURE),
            "detection": self.precision.to_dict(),
        }


class DetectionEvaluation(PairsEvaluation[DetectionReport]):
    """Finds the boxes of some pictures, given as a file of COCO's JSON or a folder with one, and
    scores them."""

    wanted = "are no pictures", "boxes in COCO's JSON", "test.json"
    one_of = "boxes (COCO's JSON), or the folder that it is in"

    def corpus(self, run: Run, files: Sequence[Path]) -> CorpusSettings:
        return CorpusSettings(source=str(files[0]), format="coco")

    def report(self, asked: EvaluationRequest, examples: ExampleSet) -> DetectionReport:
        run, search, pairs = asked.run, asked.search, examples.pairs
        detector = Detector(run, asked.settings(), search)
        logger.info("%s looks at %s", run.folder, plural(len(pairs), "picture"))
        pictures, seconds = clock(lambda: list(detector.stream(pair.source for pair in pairs)))
        return DetectionReport(
            *asked.about(examples.name, seconds), f"beam {search.beam}", detector.description,
            pairs, list(map(scene_text, pictures)), score_all(pairs, pictures), pictures,
        )  # fmt: skip
