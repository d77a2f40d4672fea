"""What translation measures while a model trains: the loss on all of dev, real translations of a
part of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dragoman.data.batches import Batch, make_batch
from dragoman.data.corpora import Pair
from dragoman.metrics.translation import evaluate_translation
from dragoman.tasks.validation import TOKENS_AT_ONCE, Validation, next_token_loss
from dragoman.training.records import Evaluation, Sample

_SAMPLES = 5


class Translations(Validation[Batch]):
    """``loss`` (nats per token), ``perplexity``, ``bleu`` and ``chrf``."""

    without = (
        "empty or longer than plan.max_source, plan.max_target or what the model has positions for"
    )

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Batch]]:
        source, target = self.forms.source, self.forms.written
        assert source.vocabulary is not None, "a translation has a source"
        sources = source.vocabulary.encode([pair.source for pair in pairs])
        targets = target.vocabulary.encode([pair.target for pair in pairs])
        limits = self.recipe.plan.within(self.recipe.model.longest)
        longest = limits.max_source, limits.max_target
        # As in training: one sentence of a hundred thousand characters would cost hours.
        fitting = [
            (pair, source, target)
            for pair, source, target in zip(pairs, sources, targets, strict=True)
            if 0 < len(source) < longest[0] and 0 < len(target) < longest[1]
        ]
        kept = sorted(((s, t) for _, s, t in fitting), key=lambda pair: len(pair[1]))
        batches: list[Batch] = []
        start = 0
        while start < len(kept):
            end, size = start, 0
            while end < len(kept) and (end == start or size + len(kept[end][1]) < TOKENS_AT_ONCE):
                size += len(kept[end][1]) + 1
                end += 1
            read, written = zip(*kept[start:end], strict=True)
            batches.append(make_batch(read, written, target.bos, target.eos))
            start = end
        return [pair for pair, _, _ in fitting], batches

    def searched(self, examples: int) -> int:
        return min(self.recipe.evaluation.dev_sentences, examples)

    def __call__(self, update: int) -> Evaluation:
        total, tokens = next_token_loss(self)
        loss = total / max(tokens, 1)
        engine, some = self.engine(), self.some()
        how = {"beam": self.recipe.evaluation.dev_beam, "n_best": 1, "sampling": None}
        settings = engine.search_settings.model_copy(update=how)
        values = engine.source.values([pair.source for pair in some])
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
        samples = tuple(
            Sample(pair.source, pair.target, hypothesis)
            for pair, hypothesis in itertools.islice(zip(some, hypotheses, strict=True), _SAMPLES)
        )
        return Evaluation(
            {
                "loss": loss,
                "perplexity": math.exp(min(loss, 700.0)),
                "bleu": scores["BLEU"],
                "chrf": scores["chrF"],
            },
            samples,
        )
