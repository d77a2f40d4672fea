"""Classification at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from dragoman.data.files.pair import Pair
from dragoman.forms.labels import plain
from dragoman.forms.sides import Forms
from dragoman.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.specs.classification import CLASSIFICATION
from dragoman.specs.spec import Spec
from dragoman.tasks.shared.label_runtime import LabelRuntime
from dragoman.tasks.shared.progress_made import TrainingSummary
from dragoman.tasks.shared.runtime import (
    Evaluate,
    MakePredictor,
    TrainingParts,
    labels_in,
    tokens_in,
)


class ClassificationRuntime(LabelRuntime):
    """A text is read, and one of some labels chosen."""

    spec: ClassVar[Spec] = CLASSIFICATION
    counts: ClassVar[str] = "labels"
    one_label: ClassVar[str] = "label"
    labelled: ClassVar[str] = "texts"

    def training_parts(self) -> TrainingParts:
        from dragoman.tasks.classification.evaluation import ClassificationValidation
        from dragoman.tasks.shared.examples import LabelledTexts
        from dragoman.training.losses.objectives import label

        return TrainingParts(LabelledTexts, label, ClassificationValidation)

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        counts[plain(pair.target)] += 1

    @property
    def evaluate(self) -> Evaluate:
        from dragoman.tasks.classification.evaluation import evaluate_run

        return evaluate_run

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        from dragoman.forms.labels import plain
        from dragoman.tasks.classification.chance import chance_of_labels
        from dragoman.tasks.shared.chance import learned_answers

        return chance_of_labels([plain(pair.target) for pair in pairs], learned_answers(recipe))

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        from dragoman.tasks.classification.chance import by_majority

        return by_majority(run)

    @property
    def predictor(self) -> MakePredictor:
        from dragoman.tasks.classification.labeller import Labeller

        return Labeller

    def vocabulary(self, run: Run) -> str:
        return f"{tokens_in(run)}; {labels_in(run)}"
