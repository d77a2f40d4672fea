"""The behaviour of the masked language model task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.tasks.masked.spec import MASKED
from dragoman.tasks.shared.progress_made import MIN_TOKENS, entropy
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime


class MaskedRuntime(Runtime):
    """The behaviour of a task that fills the blanks of a text."""

    spec: ClassVar[Spec] = MASKED

    def builders(self) -> Builders:
        from dragoman.sizing.text_alone import MaskedBuilder

        return (MaskedBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.masked.evaluation import MaskedEvaluation, MaskedValidation
        from dragoman.tasks.masked.filler import Filler
        from dragoman.tasks.shared.examples import MaskedTexts
        from dragoman.training.losses.objectives import MaskedTokens

        return Parts(MaskedTexts, MaskedTokens, MaskedValidation, MaskedEvaluation(), Filler)

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        from dragoman.base.measure import perplexity

        texts = forms.written.vocabulary.encode([pair.target for pair in pairs])
        counts = Counter(int(token) for tokens in texts for token in tokens)
        if counts.total() < MIN_TOKENS:
            return {}
        loss = entropy(counts.values())
        most = max(counts.values()) / counts.total()
        return {"loss": loss, "perplexity": perplexity(loss), "accuracy": most}
