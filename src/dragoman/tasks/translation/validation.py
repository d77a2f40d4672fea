"""Validation of translation: the loss on all of dev, and translations of a part of it."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.forms.form import Pair
from dragoman.metrics.translation import evaluate_translation
from dragoman.metrics.word_errors import WordErrors
from dragoman.runs.recipe.sections import writes_what_it_reads
from dragoman.tasks.shared.validation import PairsValidation


class TranslationValidation(PairsValidation):
    """Computes ``loss`` (nats per token), ``perplexity``, ``bleu`` and ``chrf``, and also ``wer``
    and ``cer`` for runs that write the language that they read."""

    without = "empty or longer than plan.max_source, plan.max_target or the positions of the model"

    def search(self, pairs: Sequence[Pair]) -> tuple[dict[str, float], Sequence[str]]:
        engine, settings = self.engine(), self.search_settings()
        values = engine.source.read([pair.source for pair in pairs])
        n_bests = engine.search(engine.request(source, settings) for source in values)
        hypotheses = engine.target.raw([best.tokens for best, *_ in n_bests])
        scores = evaluate_translation(
            hypotheses,
            [[pair.target for pair in pairs]],
            self.recipe.languages.target,
            # Text that Moses has tokenised already must not be tokenised again.
            tokenizer="none" if self.recipe.data.moses else None,
            metrics=("BLEU", "chrF"),
        )
        measured = {"bleu": scores["BLEU"], "chrf": scores["chrF"]}
        if writes_what_it_reads(self.recipe):
            errors = WordErrors.of([pair.target for pair in pairs], hypotheses)
            measured |= {"wer": errors.words.rate, "cer": errors.characters.rate}
        return measured, hypotheses
