"""Several models as one: the mean of their probabilities for each next token (Sutskever et al.
2014).

    P(y_t | y_<t, X) = 1/M · Σ_m P_m(y_t | y_<t, X)

It is the mean of probabilities (a mixture), not of their logarithms (a product, which other
programs use). A mixture sums to one without being normalised again, so a score is log P of a model
like any other, and a token is not excluded because a single model considers it impossible.

The models may be of any kinds and run on any paths, but must write with one vocabulary. Sources are
given as the first model reads them; a model that reads with another vocabulary has a ``Reader``.

Shapes: M models, P packed rows, N rows of a search, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dragoman.models.interface import DecodeState, Memory, Model
from dragoman.nn.layout import Sequences

Reader = Callable[[Sequences], Sequences]
"""A function that converts sources as the first model reads them to those that another model
reads."""


class EnsembleState(DecodeState):
    """A search under way in all models of an ensemble, with the same rows in each."""

    def __init__(self, states: Sequence[DecodeState]) -> None:
        self.states = tuple(states)

    @property
    def lengths(self) -> Tensor:
        return self.states[0].lengths

    def select(self, rows: Tensor) -> None:
        for state in self.states:
            state.select(rows)

    def admit(self, memory: Memory) -> None:
        for state, part in zip(self.states, memory.parts, strict=True):
            state.admit(part)


class Ensemble(Model):
    """Models that write with one vocabulary, as one model.

    Its logits are log-probabilities: their softmax is the mixture.
    """

    def __init__(self, models: Sequence[Model], readers: Sequence[Reader | None] = ()) -> None:
        """``readers``: one for each model, None for a model that reads what the first one does;
        empty: all of them do."""
        assert models, "an ensemble of no models"
        self._models = tuple(models)
        self._readers = tuple(readers) or (None,) * len(models)
        self._widths: list[int] = []

    def encode(self, source: Sequences) -> Memory:
        parts = tuple(
            model.encode(source if reader is None else reader(source))
            for model, reader in zip(self._models, self._readers, strict=True)
        )
        first = parts[0]
        return Memory(first.rows, first.layout, first.key_mask, first.tokens, parts)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Return the hidden rows of all models side by side, (P, D_1 + … + D_M), under teacher
        forcing."""
        hidden = [
            model.decode(target_in, part)
            for model, part in zip(self._models, memory.parts, strict=True)
        ]
        self._widths = [rows.shape[-1] for rows in hidden]  # the same at every call
        return torch.cat(hidden, dim=-1)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        # All of the vocabulary first: a mixture is of probabilities, which are over all of it.
        parts = hidden.split(self._widths, dim=-1)
        mixed = mixture([m.project(part) for m, part in zip(self._models, parts, strict=True)])
        return mixed if ids is None else mixed[..., ids]

    def start(self, memory: Memory) -> EnsembleState:
        return EnsembleState(
            [model.start(part) for model, part in zip(self._models, memory.parts, strict=True)]
        )

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, EnsembleState)  # a state comes back to the model that made it
        return mixture(
            [model.step(tokens, own) for model, own in zip(self._models, state.states, strict=True)]
        )


def mixture(logits: Sequence[Tensor]) -> Tensor:
    """Return the log-probabilities (..., V) of the mean of the distributions of M tensors of logits
    (..., V)."""
    known = [torch.log_softmax(_at_least_fp32(of_model), dim=-1) for of_model in logits]
    return torch.stack(known).logsumexp(dim=0) - math.log(len(known))


def _at_least_fp32(logits: Tensor) -> Tensor:
    """Convert logits to fp32 unless they are fp64, because probabilities of many tokens are
    summed."""
    return logits if logits.dtype == torch.float64 else logits.float()
