"""How good the model is while it trains: loss on all of dev, real translations of a part of it."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence

import torch

from dragoman.data.batches import Batch, make_batch
from dragoman.data.corpora import Pair
from dragoman.forms.text import Text
from dragoman.forms.text_form import TextForm
from dragoman.inference.path import fastest
from dragoman.metrics.translation import evaluate_translation
from dragoman.models.interface import Network
from dragoman.recipe import Recipe
from dragoman.search.request import Request
from dragoman.tasks.engine import Engine
from dragoman.tasks.user_cache import cache_folder
from dragoman.training.loss import smoothed_cross_entropy
from dragoman.training.records import Evaluation, Sample

_TOKENS_AT_ONCE = 2048
_LOGITS_AT_ONCE = 1 << 21
_SAMPLES = 5
_TIMED = 32


class Validation:
    """Scores a model on the dev set: ``loss`` (nats per token), ``perplexity``, ``bleu``, ``chrf``.

    Call it with the number of updates done; the model must be in evaluation mode.
    """

    def __init__(
        self,
        model: Network,
        recipe: Recipe,
        source: Text,
        target: Text,
        pairs: Sequence[Pair],
        device: torch.device,
    ) -> None:
        self._model = model
        self._recipe = recipe
        self._target = target
        languages = recipe.languages
        self._forms = TextForm(source, languages.source), TextForm(target, languages.target)
        self._device = device
        tokens = zip(
            pairs,
            source.encode([pair.source for pair in pairs]),
            target.encode([pair.target for pair in pairs]),
            strict=True,
        )
        # As in training: one sentence of a hundred thousand characters would cost hours.
        fitting = [
            (pair, s, t)
            for pair, s, t in tokens
            if 0 < len(s) < recipe.plan.max_source and 0 < len(t) < recipe.plan.max_target
        ]
        self.pairs = [pair for pair, _, _ in fitting]
        """The pairs that are neither empty nor longer than those of training."""
        self.left_out = len(pairs) - len(fitting)
        """How many are."""
        kept = sorted(((s, t) for _, s, t in fitting), key=lambda pair: len(pair[1]))
        self._batches: list[Batch] = []
        start = 0
        while start < len(kept):
            end, size = start, 0
            while end < len(kept) and (end == start or size + len(kept[end][1]) < _TOKENS_AT_ONCE):
                size += len(kept[end][1]) + 1
                end += 1
            sources, targets = zip(*kept[start:end], strict=True)
            self._batches.append(make_batch(sources, targets, target.bos, target.eos))
            start = end
        # Spread over the whole set, so that a part of it stands for all of it.
        step = max(1, len(fitting) // max(1, recipe.evaluation.dev_sentences))
        translated = fitting[::step][: recipe.evaluation.dev_sentences]
        self._translated = [pair for pair, _, _ in translated]
        self._requests = [
            Request(
                torch.tensor([*ids.tolist(), source.eos]),
                recipe.search.model_copy(
                    update={"beam": recipe.evaluation.dev_beam, "n_best": 1, "sampling": None}
                ),
            )
            for _, ids, _ in translated
        ]

    def __call__(self, update: int) -> Evaluation:
        loss = self._loss()
        engine = self._engine()
        hypotheses = engine.target.raw([best.tokens for best, *_ in engine.search(self._requests)])
        references = [pair.target for pair in self._translated]
        scores = evaluate_translation(
            hypotheses,
            references,
            self._recipe.languages.target,
            # Text that Moses has tokenised already must not be tokenised again.
            tokenizer="none" if self._recipe.data.moses else None,
            metrics=("BLEU", "chrF"),
        )
        samples = tuple(
            Sample(pair.source, pair.target, hypothesis)
            for pair, hypothesis in itertools.islice(
                zip(self._translated, hypotheses, strict=True), _SAMPLES
            )
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

    def _engine(self) -> Engine:
        """What ``translate`` would do on this machine, of the weights as they are now."""
        on_cpu = self._device.type == "cpu"
        path = fastest(self._model, remembered=cache_folder()) if on_cpu else None
        search = self._recipe.search
        return Engine(self._model, *self._forms, search, path=path, device=self._device)

    def _loss(self) -> float:
        total, tokens = 0.0, 0
        for batch in self._batches:
            batch = batch.to(self._device)
            hidden = self._model.decode(batch.target_in, self._model.encode(batch.source))
            rows = max(1, _LOGITS_AT_ONCE // self._target.size)
            for part, wanted in zip(hidden.split(rows), batch.target_out.split(rows), strict=True):
                logits = self._model.project(part).float()
                total += float(smoothed_cross_entropy(logits, wanted, 0.0)[1])
            tokens += batch.target_tokens
        return total / max(tokens, 1)


def time_validation(
    model: Network,
    recipe: Recipe,
    source: Text,
    target: Text,
    pairs: Sequence[Pair],
    device: torch.device,
) -> float:
    """About how many seconds a validation on ``pairs`` will take, by timing some of them.

    The model may be untrained: it would not know where to end, so that its translations are kept
    to the length of their sources.
    """
    search = recipe.search.model_copy(update={"max_extra": 0, "max_length": None, "min_length": 0})
    some = pairs[:: -(-len(pairs) // _TIMED) or 1]
    validation = Validation(
        model, recipe.model_copy(update={"search": search}), source, target, some, device
    )
    if not validation.pairs:
        return 0.0
    training = model.training
    model.eval()
    with torch.no_grad():
        validation(0)  # warms up
        began = time.perf_counter()
        validation(0)
        seconds = time.perf_counter() - began
    model.train(training)
    translated = min(recipe.evaluation.dev_sentences, len(pairs))
    # Of the others only the loss is taken, about a quarter of the work.
    return seconds / len(validation.pairs) * (translated + (len(pairs) - translated) / 4)
