"""Classification at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dragoman.data.pair import Pair
from dragoman.forms.labels import plain
from dragoman.forms.sides import Forms
from dragoman.measure import percent
from dragoman.metrics.classification import Confusion
from dragoman.pictures.records import Heatmap, Table
from dragoman.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.specs.classification import CLASSIFICATION
from dragoman.specs.spec import Spec
from dragoman.tasks.classification.confusions import drawn
from dragoman.tasks.shared.progress_made import TrainingSummary
from dragoman.tasks.shared.runtime import (
    Evaluate,
    MakeExamples,
    MakeObjective,
    MakePredictor,
    MakeValidation,
    Runtime,
    labels_in,
    tokens_in,
)

_SHARE = percent("", share=True)
_SHOWN = 100
"""Characters of a text in a table of mistakes."""


class ClassificationRuntime(Runtime):
    """A text is read, and one of some labels chosen."""

    spec: ClassVar[Spec] = CLASSIFICATION
    counts: ClassVar[str] = "labels"

    @property
    def examples(self) -> MakeExamples:
        from dragoman.tasks.shared.examples import LabelledTexts

        return LabelledTexts

    @property
    def objective(self) -> MakeObjective:
        from dragoman.training.objectives import label

        return label

    @property
    def validation(self) -> MakeValidation:
        from dragoman.tasks.classification.evaluation import ClassificationValidation

        return ClassificationValidation

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        counts[plain(pair.target)] += 1

    @property
    def evaluate(self) -> Evaluate:
        from dragoman.tasks.classification.evaluation import evaluate_run

        return evaluate_run

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        from dragoman.tasks.classification.chance import chance_of_labels

        return chance_of_labels([pair.target for pair in pairs])

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        from dragoman.tasks.classification.chance import by_majority

        return by_majority(run)

    def test_files(self, recipe: Recipe) -> list[str]:
        return ["test.tsv"]

    @property
    def predictor(self) -> MakePredictor:
        from dragoman.tasks.classification.labeller import Labeller

        return Labeller

    def vocabulary(self, run: Run) -> str:
        return f"{tokens_in(run)}; {labels_in(run)}"

    def tables(self, scores: Mapping[str, Any]) -> list[Table]:
        tables = []
        if labels := scores.get("labels", []):
            header = ("label", "precision", "recall", "F1", "texts")
            shares = ("precision", "recall", "f1")
            rows = [
                (one["label"], *(_SHARE.written(one[name]) for name in shares), one["texts"])
                for one in labels
            ]
            tables.append(Table("Label by label", header, rows))
        if worst := scores.get("worst", []):
            about = ("line", "label", "taken for", "probability", "of the label", "text")
            mistakes = [
                (one["line"], one["true"], one["chosen"], _SHARE.written(one["probability"]),
                 _SHARE.written(one["of_true"]), one["text"][:_SHOWN])
                for one in worst
            ]  # fmt: skip
            tables.append(Table("Surest mistakes", about, mistakes))
        return tables

    def heatmaps(self, scores: Mapping[str, Any]) -> list[Heatmap]:
        if not scores.get("confusion"):
            return []
        confusion = Confusion(np.array(scores["confusion"], np.int64))
        names = [one["label"] for one in scores["labels"]]
        test = scores.get("test", "")
        title = f"label by row, chosen by column: shares of each label's texts of {test}"
        picture = drawn(title, names, confusion)
        return [] if picture is None else [picture]
