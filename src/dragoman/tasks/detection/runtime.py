"""The runtime of detection: it connects the task to training, evaluation and prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from dragoman.forms.boxes import scene_of
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.tasks.detection.spec import DETECTION
from dragoman.tasks.shared.progress_made import MIN_ANSWERS
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime

BEGUN_AP50 = 0.1
"""The AP50 below which hardly any box is in the right place."""


class DetectionRuntime(Runtime):
    """Detection: the model reads a picture and writes boxes around the objects in it."""

    spec: ClassVar[Spec] = DETECTION
    begun: ClassVar[tuple[str, float]] = ("ap50", BEGUN_AP50)
    test_file: ClassVar[str] = "test.json"
    counts: ClassVar[str] = "categories of boxes"
    written: ClassVar[str] = "symbols of boxes"

    def builders(self) -> Builders:
        from dragoman.tasks.detection.sizes import DetectionBuilder

        return (DetectionBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.detection.detector import Detector
        from dragoman.tasks.detection.evaluation import DetectionEvaluation, DetectionValidation
        from dragoman.tasks.detection.learning import PicturesWithBoxes, objective_of

        return Parts(
            PicturesWithBoxes, objective_of, DetectionValidation, DetectionEvaluation(), Detector
        )

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        counts.update(box.label for box in scene_of(pair.target).single)

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        """Return the scores of a guess that gives each picture the true boxes of the next
        picture."""
        from dragoman.tasks.detection.metrics import ScoredBox, average_precision

        if len(pairs) < MIN_ANSWERS:
            return {}
        boxes = [scene_of(pair.target).boxes for pair in pairs]
        guesses = [[ScoredBox(box, 1.0) for box in some] for some in (*boxes[1:], boxes[0])]
        scores = average_precision(boxes, guesses).scores
        return {name: scores[name] for name in ("ap50", "ap") if name in scores}
