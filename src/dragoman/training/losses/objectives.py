"""The objectives of training: functions that compute the losses that are minimised and reported.

An objective is called with the model and a micro-batch. It returns the sum of the losses and the
number of tokens. The trainer adds up both over an update and divides once, so that the result does
not depend on how the update was cut into micro-batches, nor on how many processes shared them.
Dropout depends on the examples (``nn/dropout.py``) for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import Tensor

from dragoman.data.batches import Batch, MaskedBatch
from dragoman.data.labelled import LabelledBatch
from dragoman.models.interface import Network, Scores, Writing
from dragoman.training.losses.loss import (
    CrossEntropy,
    KernelCrossEntropy,
    PiecewiseCrossEntropy,
    smoothed_cross_entropy,
)


class Sums(NamedTuple):
    """The losses of one micro-batch, summed over the tokens that the model has to predict, and the
    number of these tokens."""

    loss: Tensor
    """The loss to minimise, label smoothing included. Only this sum has a gradient."""
    nll: Tensor
    """The loss to report: -log P of the right tokens, in nats."""
    tokens: int
    """The number of tokens to predict."""


Objective = Callable[[Any, Any], Sums]
"""A function from a model and one batch (``MicroBatch``) of its task to the sums over that
batch."""


class MicroBatch(Protocol):
    """Examples that go through a model at once, as training handles them."""

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> Self: ...

    def split(self) -> tuple[Self, Self]:
        """Split into two parts with about half of the work each, which needs at least two
        examples."""

    def summary(self) -> str:
        """Return a phrase that says how large this micro-batch is."""


class NextToken:
    """Predict every token of the target from the source and the tokens before it (paper §5.4)."""

    def __init__(self, cross_entropy: CrossEntropy) -> None:
        self._cross_entropy = cross_entropy

    def __call__(self, model: Scores, batch: Batch) -> Sums:
        memory = model.encode(batch.source)
        hidden = model.decode(batch.target_in, memory)  # (P, D)
        loss, nll = self._cross_entropy(hidden, batch.target_out)
        return Sums(loss, nll, batch.target_tokens)


class MaskedTokens:
    """Predict the masked tokens from the whole input (Devlin et al., 2019, §3.1)."""

    def __init__(self, model: Network, smoothing: float) -> None:
        self._cross_entropy = cross_entropy_of(model, smoothing)

    def __call__(self, model: Network, batch: MaskedBatch) -> Sums:
        rows = model.encode(batch.source).rows  # (P, D)
        count = len(batch.wanted)
        if not count:  # texts of unknown tokens alone, of which nothing is asked
            nothing = rows.sum().double() * 0
            return Sums(nothing, nothing.detach(), 0)
        # Only these are projected: the logits of all would be seven times as many.
        loss, nll = self._cross_entropy(rows.index_select(0, batch.places), batch.wanted)
        return Sums(loss, nll, count)


def next_token(model: Writing, smoothing: float) -> NextToken:
    """Return the objective ``NextToken`` with the fastest cross-entropy for ``model``."""
    return NextToken(cross_entropy_of(model, smoothing))


def cross_entropy_of(model: Network, smoothing: float) -> CrossEntropy:
    """Return a cross-entropy that a kernel computes if this machine has one for ``model``, else a
    ``PiecewiseCrossEntropy``."""
    piecewise = PiecewiseCrossEntropy(model.project, model.parameters(), smoothing)
    if model.output_bias is not None:  # the kernel adds none
        return piecewise
    return KernelCrossEntropy(model.output_layer, piecewise, smoothing)


class LabelObjective:
    """Predict the label of each example with a ``Classifier``. The number of examples is counted
    instead of tokens. No kernel is needed, because a classifier makes few logits."""

    def __init__(self, model: Network, smoothing: float) -> None:
        self._smoothing = smoothing

    def __call__(self, model: Network, batch: LabelledBatch) -> Sums:
        logits = model.project(model.encode(batch.source).rows)  # (B, K)
        loss, nll = smoothed_cross_entropy(
            logits, batch.labels, self._smoothing, batch.others, batch.shares
        )
        return Sums(loss, nll, len(batch))
