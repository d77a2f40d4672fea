"""Objectives in which a translator also learns distributions over the whole vocabulary: those of
its teachers, or its own under other dropout.

Both replace a share λ of the target distribution of each token, which is (1 - λ) · (the right
token, smoothed) + λ · soft. The gradient does not flow into the soft part.

Shapes: P packed rows, D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dragoman.data.batches import Batch
from dragoman.models.interface import Model, Writing
from dragoman.nn.layout import Layout, Sequences
from dragoman.training.losses.loss import PiecewiseCrossEntropy, SoftTargets
from dragoman.training.losses.objectives import Sums

_OTHER_MASKS = 0x5BD1E995
"""Added to the keys of rows, so that the second pass has other dropout masks."""


class Taught:
    """Predict each token of the target as teachers do (word-level knowledge distillation; Kim and
    Rush, 2016)."""

    def __init__(self, model: Writing, teachers: Model, smoothing: float, weight: float) -> None:
        """``teachers``: one model, or an ensemble, in evaluation mode. ``weight``: λ."""
        self._loss = PiecewiseCrossEntropy(model.project, model.parameters(), smoothing)
        self._teachers, self._weight = teachers, weight

    def __call__(self, model: Writing, batch: Batch) -> Sums:
        teachers = self._teachers
        with torch.no_grad():
            wanted = teachers.decode(batch.target_in, teachers.encode(batch.source))

        def of_rows(first: int, last: int) -> Tensor:
            return torch.softmax(teachers.project(wanted[first:last]).float(), dim=-1)

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

        def of_rows(first: int, last: int) -> Tensor:
            with torch.no_grad():
                return torch.softmax(model.project(others[first:last]).float(), dim=-1)

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
