"""Translation at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dragoman.data.files.pair import Pair
from dragoman.forms.sides import Forms
from dragoman.measure import BLEU, WER
from dragoman.metrics.chrf import pairwise_chrf
from dragoman.metrics.translation import evaluate_translation
from dragoman.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.specs.spec import Spec
from dragoman.tasks.shared.progress_made import (
    MIN_ANSWERS,
    TrainingSummary,
    below,
    learned_answers,
    of_tokens,
    on_test,
)
from dragoman.tasks.shared.runtime import Builders, Evaluate, Parts, Runtime, tokens_in
from dragoman.tasks.translation.spec import TRANSLATION

BEGUN_BLEU = 5.0
"""Below it a translator has hardly begun: trainings that were watched passed it where the score
begins to climb (docs/experiments.md, "Minutes that do not teach")."""
BEGUN_WER = 90.0
"""Above it nearly no word is right: writing the most frequent word alone scores about as much."""


class TranslationRuntime(Runtime):
    """A text is read, and another one written."""

    spec: ClassVar[Spec] = TRANSLATION
    draws_attention: ClassVar[bool] = True

    def builders(self) -> Builders:
        from dragoman.tasks.transcription.sizes import SpokenBuilder
        from dragoman.tasks.translation.sizes import TranslationBuilder

        return (TranslationBuilder(), SpokenBuilder())

    def parts(self) -> Parts:
        from dragoman.tasks.shared.examples import Pairs
        from dragoman.tasks.translation.evaluation import evaluate_run
        from dragoman.tasks.translation.translator import Translator
        from dragoman.tasks.translation.validation import TranslationValidation
        from dragoman.training.losses.objectives import next_token

        return Parts(Pairs, next_token, TranslationValidation, evaluate_run, Translator.whole)

    @property
    def evaluate(self) -> Evaluate:
        """As of ``parts``, but mistakes in what is given are told before torch is imported."""
        from dragoman.tasks.translation.evaluation import evaluate_run

        return evaluate_run

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        references = [pair.target for pair in pairs]
        tokenizer = "none" if recipe.data.moses else None
        return of_tokens(forms.target.encode(references)) | chance_of_translations(
            [references], learned_answers(recipe), recipe.languages.target, tokenizer
        )

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        if run.task.purpose == "transcription":
            wer, where = training.scores.get("wer"), "dev"
            if wer is None:
                wer, where = on_test(run, "WER"), "the test set"
            if wer is None or wer <= BEGUN_WER:
                return None
            return (
                f"WER {WER.written(wer)} on {where}, above the {WER.written(BEGUN_WER)} of a model "
                "that has begun to hear"
            )
        return below(BLEU, BEGUN_BLEU, training.scores.get("bleu"), on_test(run, "BLEU"))

    def test_files(self, recipe: Recipe) -> list[str]:
        if recipe.spec.reads_files:
            return ["test.tsv"]
        return [f"test.{recipe.languages.source}", f"test.{recipe.languages.target}"]

    def vocabulary(self, run: Run) -> str:
        if run.recipe.text.shared:
            return f"{tokens_in(run)}, shared"
        kind = run.recipe.text.kind
        if run.task.reads_files:
            return f"{tokens_in(run)}; {run.target.size:,} target {kind} tokens"
        return f"{run.source.size:,} source, {run.target.size:,} target {kind} tokens"


MIN_BLEU = 1.0
"""The least BLEU that counts as more than a guess, even where the best guess scores less: of two
models with 0.7 and 0.0 neither translates, however significant the difference."""
_ALIKE = 200
"""Texts among which the most typical one is searched for: all pairs are compared."""


def chance_of_translations(
    references: Sequence[Sequence[str]],
    learned: Sequence[str],
    language: str,
    tokenizer: str | None = None,
) -> dict[str, float]:
    """Of references as ``evaluate_translation`` takes them. ``learned``: the targets of training
    (``learned_answers``)."""
    lines = references[0]
    if len(lines) < MIN_ANSWERS or not learned:
        return {"bleu": MIN_BLEU}
    some = list(learned[:: max(1, len(learned) // _ALIKE)])[:_ALIKE]
    usual = some[int(pairwise_chrf(some).mean(axis=1).argmax())]
    scores = evaluate_translation(
        [usual] * len(lines), references, language, tokenizer=tokenizer, metrics=("BLEU", "chrF")
    )
    return {"bleu": max(MIN_BLEU, scores["BLEU"]), "chrf": scores["chrF"]}
