"""Objectives in which a translator also learns distributions over the vocabulary: those of its
teachers, or its own under other dropout.

Both replace a share λ of the target distribution of each token, which is (1 - λ) · (the right
token, smoothed) + λ · soft. The gradient does not flow into the soft part.

Shapes: P packed rows, D width, V vocabulary, K likely tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.data.batches import Batch
from dragoman.models.interface import Model, Writing
from dragoman.nn.layout import Layout, Sequences
from dragoman.training.losses.loss import PiecewiseCrossEntropy, SoftTargets
from dragoman.training.losses.objectives import Sums

_OTHER_MASKS = 0x5BD1E995
"""Added to the keys of rows, so that the second pass has other dropout masks."""


class Likely(NamedTuple):
    """The likeliest tokens of each row, as teachers predict it."""

    probabilities: Tensor
    """The probabilities of these tokens, (P, K)."""
    tokens: Tensor
    """Their numbers, (P, K) int64, with the likeliest token first."""


LIKELY = 16
"""The number of likely tokens of a row that a student learns, K."""
_ROWS = 256
"""The logits of this many rows are in memory at once."""


@torch.no_grad()
def predict(teachers: Model, batch: Batch) -> Likely:
    """Predict each token of the target. ``teachers``: one model, or an ensemble, in evaluation
    mode."""
    hidden = teachers.decode(batch.target_in, teachers.encode(batch.source))
    parts = []
    for rows in hidden.split(_ROWS):
        logits = teachers.project(rows).float()
        parts.append(torch.softmax(logits, dim=-1).topk(min(LIKELY, logits.shape[-1])))
    return Likely(*(torch.cat(part) for part in zip(*parts, strict=True)))


class Taught:
    """Predict each token of the target as teachers do (word-level knowledge distillation; Kim and
    Rush, 2016): the likeliest tokens, and all others together."""

    def __init__(
        self, model: Writing, predict: Callable[[Batch], Likely], smoothing: float, weight: float
    ) -> None:
        """``predict``: what the teachers predict of a batch. ``weight``: λ."""
        self._loss = PiecewiseCrossEntropy(model.project, model.parameters(), smoothing)
        self._predict, self._weight = predict, weight

    def __call__(self, model: Writing, batch: Batch) -> Sums:
        wanted = self._predict(batch)

        def of_rows(first: int, last: int) -> tuple[Tensor, Tensor]:
            return wanted.probabilities[first:last], wanted.tokens[first:last]

        hidden = model.decode(batch.target_in, model.encode(batch.source))  # (P, D)
        loss, nll = self._loss(hidden, batch.target_out, SoftTargets(self._weight, of_rows))
        return Sums(loss, nll, batch.target_tokens)


class Consistent:
    """Predict each token twice, with different dropout masks, and learn that both distributions
    agree (R-Drop; Liang et al., 2021).

    The paper adds α times the mean of both Kullback-Leibler divergences, here with each
    distribution in turn held fixed; λ = α / (1 + α).
    """

    def __init__(self, model: Writing, smoothing: float, weight: float) -> None:
        """``weight``: λ, the weight of the other prediction."""
        self._loss = PiecewiseCrossEntropy(model.project, model.parameters(), smoothing)
        self._weight = weight

    def __call__(self, model: Writing, batch: Batch) -> Sums:
        twice = replace(batch, source=_twice(batch.source), target_in=_twice(batch.target_in))
        hidden = model.decode(twice.target_in, model.encode(twice.source))  # (2P, D)
        own = batch.target_tokens
        others = torch.cat([hidden[own:], hidden[:own]]).detach()

        def of_rows(first: int, last: int) -> tuple[Tensor, None]:
            with torch.no_grad():
                return torch.softmax(model.project(others[first:last]).float(), dim=-1), None

        targets = torch.cat([batch.target_out, batch.target_out])
        loss, nll = self._loss(hidden, targets, SoftTargets(self._weight, of_rows))
        return Sums(loss / 2, nll / 2, own)


def _twice(sequences: Sequences) -> Sequences:
    """Return all sequences of a batch twice; the second time, dropout has other masks."""
    layout, values = sequences.layout, sequences.values
    keys = layout.first_row_keys
    if keys is not None:
        keys = torch.cat([keys, keys + _OTHER_MASKS])  # may wrap around
    both = Layout([*layout.lengths, *layout.lengths], layout.device, keys)
    return Sequences(torch.cat([values, values]), both)
