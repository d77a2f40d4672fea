"""The runtime of painting: it connects the task to training, evaluation and prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.runs.run import Run
from dragoman.tasks.painting.spec import PAINTING
from dragoman.tasks.shared.progress_made import (
    MIN_ANSWERS,
    TrainingSummary,
    by_frequency,
    of_tokens,
)
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime, codes_in

BEGUN = 0.02
"""The share of exact pictures below which a message says that hardly any picture fits its
caption."""


class PaintingRuntime(Runtime):
    """Painting: the model reads a caption and writes the codes of a picture."""

    spec: ClassVar[Spec] = PAINTING
    begun: ClassVar[tuple[str, float]] = ("exact", BEGUN)
    test_file: ClassVar[str] = "test.tsv"

    def builders(self) -> Builders:
        from dragoman.tasks.painting.sizes import PaintingBuilder

        return (PaintingBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.painting.evaluation import PaintingEvaluation, PaintingValidation
        from dragoman.tasks.painting.painter import Painter
        from dragoman.tasks.shared.examples import Pairs
        from dragoman.training.losses.objectives import next_token

        return Parts(Pairs, next_token, PaintingValidation, PaintingEvaluation(), Painter)

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        """Return the scores of a guess that gives each caption the true picture of the next one."""
        from dragoman.tasks.painting.evaluation import code_scores

        if len(pairs) < MIN_ANSWERS:
            return {}
        true = forms.target.encode([pair.target for pair in pairs])
        codes = [tokens.tolist() for tokens in true]
        guessed = of_tokens(true)
        scores = {"loss": guessed["loss"]} if guessed else {}
        return scores | code_scores(codes, [*codes[1:], codes[0]])

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        if run.recipe.search.sampling is not None:  # a caption has many right pictures
            return by_frequency(run, training)
        return super().hardly_learned(run, training)

    def vocabulary(self, run: Run) -> str:
        return codes_in(run)
