"""The runtime of the codes of pictures: it connects the task to training and evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from dragoman.base.errors import RunError
from dragoman.engine.settings import EngineSettings
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.runs.run import Run
from dragoman.tasks.codes.spec import CODES_TASK
from dragoman.tasks.shared.progress_made import MIN_ANSWERS, TrainingSummary, on_test
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime, codes_in

if TYPE_CHECKING:
    from dragoman.engine.predictor import Predictor

BEGUN_CODES = 4.0
"""The codebook perplexity below which codes hardly distinguish pictures."""


class CodesRuntime(Runtime):
    """A picture is encoded as codes, and decoded from them."""

    spec: ClassVar[Spec] = CODES_TASK
    test_file: ClassVar[str] = "test.tsv"

    def builders(self) -> Builders:
        from dragoman.tasks.codes.sizes import CodesBuilder

        return (CodesBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.codes.evaluation import (
            CodesEvaluation,
            CodesValidation,
            Pictures,
            SquaredError,
        )

        return Parts(Pictures, SquaredError, CodesValidation, CodesEvaluation(), _nothing_to_ask)

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        """The score of replacing each picture by the mean of all pictures."""
        import numpy as np

        from dragoman.tasks.codes.evaluation import error_of_mean

        if len(pairs) < MIN_ANSWERS:
            return {}
        read = forms.source.encode([pair.source for pair in pairs])
        return {"rmse": error_of_mean(np.stack(read))}

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        perplexity = training.scores.get("code_perplexity", on_test(run, "code_perplexity"))
        if perplexity is None or perplexity >= BEGUN_CODES:
            return None
        return (
            f"the codes of its pictures have a perplexity of {perplexity:.1f}, so they hardly "
            "distinguish pictures"
        )

    def vocabulary(self, run: Run) -> str:
        return codes_in(run)


def _nothing_to_ask(run: Run, settings: EngineSettings | None) -> Predictor[object]:
    raise RunError(
        f"{run.folder} makes codes for a painter and is not used by itself. Train a painter: "
        f"dragoman train captions.tsv --task painting --codes {run.folder}"
    )
