"""What translation measures while a model trains: the loss on all of dev, real translations of a
part of it."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.data.batches import Batch
from dragoman.data.pair import Pair
from dragoman.metrics.translation import evaluate_translation
from dragoman.tasks.shared.validation import (
    Validation,
    batches_of_pairs,
    loss_scores,
    next_token_loss,
    samples_of,
)
from dragoman.training.records import Evaluation


class TranslationValidation(Validation[Batch]):
    """``loss`` (nats per token), ``perplexity``, ``bleu`` and ``chrf``."""

    without = (
        "empty or longer than plan.max_source, plan.max_target or what the model has positions for"
    )

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Batch]]:
        return batches_of_pairs(self.forms, self.recipe, pairs)

    def searched(self, examples: int) -> int:
        return min(self.recipe.evaluation.dev_sentences, examples)

    def __call__(self, update: int) -> Evaluation:
        losses = loss_scores(*next_token_loss(self))
        engine, some, settings = self.engine(), self.some(), self.search_settings()
        values = engine.source.read([pair.source for pair in some])
        found = engine.search(engine.request(one, settings) for one in values)
        hypotheses = engine.target.raw([best.tokens for best, *_ in found])
        scores = evaluate_translation(
            hypotheses,
            [[pair.target for pair in some]],
            self.recipe.languages.target,
            # Text that Moses has tokenised already must not be tokenised again.
            tokenizer="none" if self.recipe.data.moses else None,
            metrics=("BLEU", "chrF"),
        )
        return Evaluation(
            losses | {"bleu": scores["BLEU"], "chrf": scores["chrF"]}, samples_of(some, hypotheses)
        )
