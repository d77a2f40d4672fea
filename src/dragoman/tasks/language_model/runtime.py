"""The behaviour of the language model task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.tasks.language_model.spec import LANGUAGE_MODEL
from dragoman.tasks.shared.progress_made import of_tokens
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime


class LanguageModelRuntime(Runtime):
    """The behaviour of a task that reads nothing and writes a text."""

    spec: ClassVar[Spec] = LANGUAGE_MODEL

    def builders(self) -> Builders:
        from dragoman.sizing.text_alone import TextsBuilder

        return (TextsBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.language_model.evaluation import (
            LanguageModelEvaluation,
            LanguageModelValidation,
        )
        from dragoman.tasks.language_model.writer import Writer
        from dragoman.tasks.shared.examples import TextWindows
        from dragoman.training.losses.objectives import next_token

        return Parts(
            TextWindows, next_token, LanguageModelValidation, LanguageModelEvaluation(), Writer
        )

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        from dragoman.tasks.shared.surprisal import Length

        vocabulary = forms.written.vocabulary
        texts = [pair.target for pair in pairs]
        written = vocabulary.encode(texts)
        if not (costs := of_tokens(written)):
            return {}
        both = zip(texts, written, strict=True)
        length = sum((Length.of(vocabulary, *pair) for pair in both), Length())
        return costs | length.scores(costs["loss"] * length.tokens)
