"""Several models as one: the mean of what they give each next token (Sutskever et al. 2014).

    P(y_t | y_<t, X) = 1/M · Σ_m P_m(y_t | y_<t, X)

The mean is of probabilities, a mixture, and not of their logarithms (a product, which other
programs take): it sums to one without being normalised again, so that a score is log P of a model
as any other's, and a token that one model alone holds for impossible is not forbidden by it.

The models may be of any kinds, run in any way, as long as they write with one vocabulary. What the
first reads is what is given; a model that reads by another vocabulary has a ``Reader``.

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
"""Converts sources as the first model reads them to those that another model reads."""


class EnsembleState(DecodeState):
    """A search under way in every model; all have the same rows."""

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
    """Models that write with one vocabulary, under the contract of a single one.

    Its logits are log-probabilities: their softmax is the mixture.
    """

    def __init__(self, models: Sequence[Model], readers: Sequence[Reader | None] = ()) -> None:
        """``readers``: one for each model, None where it reads what the first does; left out, all
        of them do."""
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
        """-> the hidden rows of all models side by side, (P, D_1 + … + D_M)."""
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
    """M x (..., V) logits -> (..., V) log-probabilities of the mean of their distributions."""
    known = [torch.log_softmax(_at_least_fp32(one), dim=-1) for one in logits]
    return torch.stack(known).logsumexp(dim=0) - math.log(len(known))


def _at_least_fp32(logits: Tensor) -> Tensor:
    """In fp32 at least: probabilities of many tokens are summed."""
    return logits if logits.dtype == torch.float64 else logits.float()
