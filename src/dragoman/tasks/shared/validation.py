"""Validation during training: the parts that all tasks share.

Each task's ``NAME/evaluation.py`` adds its own scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import islice
from typing import ClassVar, Generic, TypeVar

import torch

from dragoman.base.measure import perplexity
from dragoman.data.batches import Batch, in_batches, make_batch
from dragoman.data.correspondence import spread
from dragoman.engine.engine import Engine
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.models.catalogue.fastest import fastest
from dragoman.models.interface import Network, Writing, writing
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.user_cache import cache_folder
from dragoman.search.settings import SearchSettings
from dragoman.training.losses.objectives import Objective, next_token
from dragoman.training.records import Evaluation, Sample

TOKENS_AT_ONCE = 2048
"""The most target tokens of a batch, unless one example has more."""
_SAMPLES = 5

Measured = TypeVar("Measured")
"""The type of a task's batches."""


class Validation(ABC, Generic[Measured]):
    """Scores a model on the dev set, by the metrics of its task (``Task.metrics``).

    Call it with the number of updates done; the model must be in evaluation mode.
    """

    def __init__(
        self,
        model: Network,
        recipe: Recipe,
        forms: Forms,
        pairs: Sequence[Pair],
        device: torch.device,
    ) -> None:
        """``forms`` are those of the text in ``pairs``, which may already be tokenised by Moses."""
        self.model = model
        self.recipe = recipe
        self.forms = forms
        self.device = device
        self.pairs, self.batches = self.fitting(pairs)
        self.left_out = len(pairs) - len(self.pairs)
        """The number of examples that are left out."""

    @abstractmethod
    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Measured]]:
        """Select the examples to score, and make the batches for their loss."""

    @property
    @abstractmethod
    def without(self) -> str:
        """Say in words which examples are left out."""

    @abstractmethod
    def __call__(self, update: int) -> Evaluation:
        """Compute all scores, and some samples for people."""

    def search_count(self, examples: int) -> int:
        """The number of ``examples`` to search for, which takes most of the time."""
        return 0

    def some(self) -> list[Pair]:
        """The pairs whose outputs are searched for at each validation: a sample spread over the
        whole set."""
        return [self.pairs[place] for place in self.spread(self.search_count(len(self.pairs)))]

    def spread(self, wanted: int) -> list[int]:
        """Return the indices of at most ``wanted`` pairs, from the first to the last at equal
        distances."""
        return spread(range(len(self.pairs)), wanted)

    def search_settings(self) -> SearchSettings:
        """Search settings for one output for each pair, with beam ``evaluation.dev_beam``."""
        how = {"beam": self.recipe.evaluation.dev_beam, "n_best": 1, "sampling": None}
        return self.recipe.search.model_copy(update=how)

    def reading_engine(self) -> Engine:
        """Open the model for reading only. The engine always uses the weights that the model has at
        that moment."""
        return Engine(self.model, *self.forms, self.recipe.search, device=self.device, writes=False)

    def engine(self) -> Engine:
        """Open the present weights on the fastest path of this machine."""
        model, on_cpu = writing(self.model), self.device.type == "cpu"
        path = fastest(model, remembered=cache_folder()) if on_cpu else None
        return Engine(model, *self.forms, self.recipe.search, path=path, device=self.device)


class PairsValidation(Validation[Batch]):
    """Validates a task in which a model reads a source, and a search finds the output. The loss is
    computed on all pairs, and the other scores on the outputs of full searches for a part of
    them."""

    objective: ClassVar[Callable[..., Objective]] = staticmethod(next_token)
    """Makes the objective from a network and the amount of label smoothing."""

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Batch]]:
        """Select the pairs within the length limits of training (one sentence of a hundred thousand
        characters would cost hours), and batch them by target length."""
        source, target = self.forms
        sources = source.encode([pair.source for pair in pairs])
        targets = target.encode([pair.target for pair in pairs])
        limits = self.recipe.bounded_plan
        longest, ends = (limits.max_source, limits.max_target), int(source.end is not None)
        fitting = [
            (pair, source, target)
            for pair, source, target in zip(pairs, sources, targets, strict=True)
            if 0 < len(source) <= longest[0] - ends and 0 < len(target) < longest[1]
        ]
        kept = sorted(((s, t) for _, s, t in fitting), key=lambda pair: len(pair[1]))
        batches: list[Batch] = []
        for batch in in_batches(kept, TOKENS_AT_ONCE, lambda pair: len(pair[1]) + 1):
            read, written = zip(*batch, strict=True)
            batches.append(make_batch(read, written, target.bos, target.eos))
        return [pair for pair, _, _ in fitting], batches

    def search_count(self, examples: int) -> int:
        return min(self.recipe.evaluation.dev_sentences, examples)

    def __call__(self, update: int) -> Evaluation:
        total, tokens = sum_loss(self, self.objective)
        loss, some = total / max(tokens, 1), self.some()
        losses = {"loss": loss, "perplexity": perplexity(loss)}
        known = {name: value for name, value in losses.items() if name in self.recipe.spec.metrics}
        scores, outputs = self.search(some)
        return Evaluation(known | scores, samples_of(some, outputs))

    @abstractmethod
    def search(self, pairs: Sequence[Pair]) -> tuple[dict[str, float], Sequence[str]]:
        """Search for the outputs of ``pairs``. Return their scores, and the outputs as texts."""


def samples_of(pairs: Sequence[Pair], hypotheses: Sequence[str]) -> tuple[Sample, ...]:
    """Make samples for people from the first pairs and the model's outputs."""
    some = islice(zip(pairs, hypotheses, strict=True), _SAMPLES)
    return tuple(Sample(pair.source, pair.target, hypothesis) for pair, hypothesis in some)


def sum_loss(
    validation: Validation[Batch], make: Callable[[Writing, float], Objective] = next_token
) -> tuple[float, int]:
    """Sum -log P of all that is to be predicted, in nats, and count it. ``make`` makes the
    objective, which is that of training without label smoothing."""
    model = writing(validation.model)
    objective = make(model, 0.0)
    sums = [objective(model, batch.to(validation.device)) for batch in validation.batches]
    return sum(float(part.nll) for part in sums), sum(part.tokens for part in sums)
