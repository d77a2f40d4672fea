"""Guided alignment: one head of the decoder learns to align while the model learns to translate.

Garg et al. (2019, "Jointly Learning to Align and Translate with Transformer Models") add to the
loss

    - λ · Σ_t Σ_s A_ts log a_ts

where a_t are the weights with which one head attends to the source, and A_t is 1 / n on the n
source tokens that target token t is linked to. Tokens without a link add nothing to the loss.

Garg et al. let the head see the whole target, by a second pass of the decoder without its mask.
Here there is no second pass: the head is taken from the ordinary pass, at the step that has already
*read* token t and therefore knows it (Chen et al. 2020, "Accurate Word Alignment Induction from
Neural Machine Translation"). Nothing is computed twice, every kind of model can learn in this way,
and the alignment is available while a translation is being written. docs/decisions/insight.md says
more.

Shapes: B examples, T target rows (the begin symbol first), S source tokens (the end symbol last).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import Batch
from dragoman.data.word_links import Booleans, WordLinks, words_of
from dragoman.nn.probes import Guide
from dragoman.training.losses.objectives import Objective, Sums

_MIN_WEIGHT = 1e-9
"""Attention weights below this value are replaced by it, so that their logarithm stays finite."""


@dataclass(eq=False)
class GuidedAlignment:
    """The sum of the loss of an objective and of the weighted alignment loss of one attention
    head."""

    objective: Objective
    links: WordLinks
    """The word links of all examples of the store."""
    starts: tuple[Booleans, Booleans]
    """Two arrays of flags for tokens, one of the source and one of the target: true if the token
    begins a word."""
    _: KW_ONLY
    attention: str
    """The name of the model's attention whose ``head`` is trained."""
    head: int
    weight: float
    """The weight of the alignment loss (λ)."""

    def __call__(self, model: Any, batch: Batch) -> Sums:
        with Guide(self.attention, self.head) as guide:
            sums = self.objective(model, batch)
        assert guide.weights is not None, f"no attention is called {self.attention}"
        known = guide.weights.float().clamp(min=_MIN_WEIGHT).log()
        loss = -(known * self.labels(batch).to(known.device)).sum(dtype=torch.float64)
        return Sums(sums.loss + self.weight * loss, sums.nll, sums.tokens)

    def labels(self, batch: Batch) -> Tensor:
        """Return (B, T, S): for each target position, the attention weights that the head should
        have over the source positions. Each row sums to 1, or to 0 if its word has no link."""
        source, target = batch.source, batch.target_in
        grid = np.zeros((len(batch), target.layout.longest, source.layout.longest), np.float32)
        parts = zip(
            batch.ids,
            source.values.cpu().split(list(source.layout.lengths)),
            target.values.cpu().split(list(target.layout.lengths)),
            strict=True,
        )
        for row, (example, read, written) in enumerate(parts):
            of_source = words_of(read[:-1].numpy(), self.starts[0])
            of_target = words_of(written[1:].numpy(), self.starts[1])
            sources, targets = self.links[example]
            if not len(sources) or not len(of_source) or not len(of_target):
                continue
            words = np.zeros((of_target[-1] + 1, of_source[-1] + 1), np.float32)
            inside = (sources < words.shape[1]) & (targets < words.shape[0])
            words[targets[inside], sources[inside]] = 1
            tokens = words[of_target][:, of_source]  # (T - 1, S - 1)
            tokens /= np.maximum(tokens.sum(axis=1, keepdims=True), 1)
            grid[row, 1 : len(written), : len(read) - 1] = tokens
        return torch.from_numpy(grid)
