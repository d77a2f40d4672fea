"""The runtime of classification: it connects the task to training, evaluation and prediction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from dragoman.forms.form import Pair
from dragoman.forms.labels import plain
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.runs.run import Run
from dragoman.tasks.classification.spec import CLASSIFICATION, rare_labels
from dragoman.tasks.shared.label_report import SURE, LabelRuntime, beside_guess
from dragoman.tasks.shared.progress_made import (
    MIN_ANSWERS,
    TrainingSummary,
    entropy,
    training_answers,
)
from dragoman.tasks.shared.runtime import Builders, Parts


class ClassificationRuntime(LabelRuntime):
    """Classification: the model reads a text and chooses a label for it."""

    spec: ClassVar[Spec] = CLASSIFICATION
    counts: ClassVar[str] = "labels"
    one_label: ClassVar[str] = "label"

    def builders(self) -> Builders:
        from dragoman.tasks.classification.sizes import ClassificationBuilder, FilesBuilder

        return (ClassificationBuilder, FilesBuilder)

    def parts(self) -> Parts:
        from dragoman.tasks.classification.evaluation import (
            ClassificationEvaluation,
            ClassificationValidation,
            compare_labels,
        )
        from dragoman.tasks.classification.labeller import Labeller
        from dragoman.tasks.shared.examples import LabelledTexts
        from dragoman.training.losses.objectives import LabelObjective

        return Parts(
            LabelledTexts, LabelObjective, ClassificationValidation,
            ClassificationEvaluation(), Labeller, compare_labels,
        )  # fmt: skip

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        counts[plain(pair.target)] += 1

    def rare_targets(self, counts: Mapping[str, int]) -> list[str]:
        return list(filter(None, [rare_labels(counts)]))

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        return chance_of_labels([plain(pair.target) for pair in pairs], training_answers(recipe))

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        """A sentence that says that a run is no better than always choosing the most frequent
        label. None if it is better, or was measured on too few texts."""
        scores = run.scores()
        labels = scores.get("labels", [])
        texts = sum(label["texts"] for label in labels)
        if texts < MIN_ANSWERS:
            return None
        accuracy = sum(label["texts"] * label["recall"] for label in labels) / texts
        most = max(labels, key=lambda label: label["texts"])
        present = [label for label in labels if label["texts"]]
        f1 = sum(label["f1"] for label in present) / len(present)
        share = most["texts"] / texts
        guessed = f1_of(share, len(present))
        error = math.sqrt(share * (1 - share) / texts)
        if accuracy > share + SURE * error or f1 > guessed + SURE * error + 0.05:
            return None
        if columns := scores.get("confusion", []):
            chosen = [sum(row[k] for row in columns) for k in range(len(labels))]
            if max(chosen) == sum(chosen):
                always = labels[chosen.index(max(chosen))]["label"]
                return f"it gives every text the label {always!r}"
        return beside_guess(accuracy, repr(most["label"]), share)


def chance_of_labels(labels: Sequence[str], learned: Sequence[str]) -> dict[str, float]:
    """The scores of guessing the labels of some texts; empty if there are too few texts, if all
    have one label, or if the training labels (``training_answers``) are unknown."""
    if len(labels) < MIN_ANSWERS or len(set(labels)) < 2 or not learned:
        return {}
    counts = Counter(labels)
    (usual, _), *_ = Counter(map(plain, learned)).most_common(1)
    share = counts[usual] / len(labels)
    loss = entropy(counts.values())
    return {"accuracy": 100 * share, "macro_f1": 100 * f1_of(share, len(counts)), "loss": loss}


def f1_of(share: float, labels: int) -> float:
    """Macro F1, as a share, of always choosing the one label that a ``share`` of the texts have."""
    return 2 * share / (1 + share) / labels
