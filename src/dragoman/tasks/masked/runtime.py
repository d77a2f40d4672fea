"""The specification and the runtime of masked language models: a model reads a text with blanks and
fills them. The runtime has what trains, evaluates and predicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dragoman.base.measure import LOSS, PERPLEXITY, Measure, percent
from dragoman.base.task import Side
from dragoman.forms.form import Form, Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import OneText, Spec
from dragoman.tasks.shared.progress_made import MIN_TOKENS, entropy
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime


@dataclass(frozen=True)
class MaskedSpec(OneText):
    """The specification of a task whose input is its target text with some tokens hidden."""

    sections: ClassVar[frozenset[str]] = frozenset({"masking"})
    fixed_words: ClassVar[bool] = True

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["target"], given["target"])


MASKED = MaskedSpec(
    name="masked",
    called="masked language model",
    writes=False,
    counted="masked tokens",
    metrics={
        "loss": LOSS,
        "perplexity": PERPLEXITY,
        "accuracy": percent("accuracy", share=True),
    },
    finished={"pseudo_perplexity": Measure("pseudo-perplexity", "lower")},
    begins=(6_000, 0),
    verbs=(("fill", "'How it ___.'"),),
    hub_tag="fill-mask",
    limits=("It fills in what its training text makes likely, whether it is true or not.",),
    symbols=("<mask>",),
)


class MaskedRuntime(Runtime):
    """The behaviour of a task that fills the blanks of a text."""

    spec: ClassVar[Spec] = MASKED

    def builders(self) -> Builders:
        from dragoman.tasks.masked.sizes import MaskedBuilder

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
