"""Tagging at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dragoman.data.pair import Pair
from dragoman.forms.sides import Forms
from dragoman.forms.tags import tags_of
from dragoman.measure import percent
from dragoman.metrics.classification import Confusion
from dragoman.metrics.tagging import SpanCounts
from dragoman.pictures.records import Heatmap, Table
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.specs.spec import Spec
from dragoman.specs.tagging import TAGGING
from dragoman.tasks.classification.confusions import drawn
from dragoman.tasks.shared.progress_made import TrainingSummary
from dragoman.tasks.shared.runtime import (
    Evaluate,
    MakeExamples,
    MakeObjective,
    MakePredictor,
    MakeValidation,
    Runtime,
    tokens_in,
)
from dragoman.tasks.tagging.chance import by_usual_tag, chance_of_tags

_SHARE = percent("", share=True)
_CONFUSED = 15
"""Rows of a table of confusions."""


class TaggingRuntime(Runtime):
    """A sentence is read, and a tag chosen for each of its words."""

    spec: ClassVar[Spec] = TAGGING
    counts: ClassVar[str] = "tags"

    @property
    def examples(self) -> MakeExamples:
        from dragoman.tasks.tagging.learning import TaggedSentences

        return TaggedSentences

    @property
    def objective(self) -> MakeObjective:
        from dragoman.tasks.tagging.learning import TagOfEachWord

        return TagOfEachWord

    @property
    def validation(self) -> MakeValidation:
        from dragoman.tasks.tagging.validation import TaggedValidation

        return TaggedValidation

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        counts.update(pair.target.split())

    @property
    def evaluate(self) -> Evaluate:
        from dragoman.tasks.tagging.evaluation import evaluate_run

        return evaluate_run

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        return chance_of_tags(tags_of(forms), pairs)

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        return by_usual_tag(run)

    def test_files(self, recipe: Recipe) -> list[str]:
        return ["test.tsv"]

    @property
    def predictor(self) -> MakePredictor:
        from dragoman.tasks.tagging.tagger import Tagger

        return Tagger

    def vocabulary(self, run: Run) -> str:
        return f"{tokens_in(run)}; {plural(run.forms.target.size, 'tag')}"

    def tables(self, scores: Mapping[str, Any]) -> list[Table]:
        shares = ("precision", "recall", "f1")
        tables = []
        if labels := scores.get("labels", []):
            rows = [
                (one["label"], *(_SHARE.written(one[name]) for name in shares), one["texts"])
                for one in labels
                if one["texts"]
            ]
            tables.append(Table("Tag by tag", ("tag", "precision", "recall", "F1", "words"), rows))
        if spans := scores.get("spans", {}):
            counts = {kind: SpanCounts(**one) for kind, one in spans.items()}
            rows = [
                (kind, *map(_SHARE.written, (one.precision, one.recall, one.f1)), one.there)
                for kind, one in counts.items()
            ]
            tables.append(Table("Spans", ("span", "precision", "recall", "F1", "spans"), rows))
        if scores.get("confusion"):
            names = [one["label"] for one in labels]
            often = Confusion(np.array(scores["confusion"], np.int64)).mistaken()[:_CONFUSED]
            confused = [(names[true], names[chosen], count) for true, chosen, count in often]
            tables.append(Table("Confused most often", ("tag", "taken for", "words"), confused))
        if worst := scores.get("worst", []):
            about = ("line", "tag", "taken for", "probability", "of the tag", "words")
            mistakes = [
                (one["line"], one["true"], one["chosen"], _SHARE.written(one["probability"]),
                 _SHARE.written(one["of_true"]), one["text"])
                for one in worst
            ]  # fmt: skip
            tables.append(Table("Surest mistakes", about, mistakes))
        return tables

    def heatmaps(self, scores: Mapping[str, Any]) -> list[Heatmap]:
        if not scores.get("confusion"):
            return []
        confusion = Confusion(np.array(scores["confusion"], np.int64))
        names = [one["label"] for one in scores["labels"]]
        title = f"tag by row, chosen by column: shares of each tag's words of {scores.get('test')}"
        picture = drawn(title, names, confusion)
        return [] if picture is None else [picture]
