"""A model that copies the words of its source in any order. Not a test: tests import it.

Whatever stands in the source is probable, the end only when all of it has been written; each token
looks at those of the source that are the same. So what is left out, or was never there, is as
plain as in no trained model.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.models.interface import AttentionLayer, DecodeState, Memory, Writing
from dragoman.models.settings import ModelSettings
from dragoman.nn import probes
from dragoman.nn.embedding import Embedding
from dragoman.nn.layout import Sequences

OWED = 6.0
"""Nats by which a token of the source is more probable than another."""
MISSED = 0.8
"""Nats that the end is less probable for each token that was not written yet, if not told
otherwise."""


class BagModel(Writing):
    """``attends``: whether there is attention to look at."""

    def __init__(
        self, vocabulary: int, eos: int, *, attends: bool = True, missed: float = MISSED
    ) -> None:
        super().__init__()
        self.settings = ModelSettings(kind="bag", model_dim=vocabulary)
        self._size, self._eos, self._attends, self._missed = vocabulary, eos, attends, missed

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return (AttentionLayer("cross", 0, 1, 1.0, "bag"),) if self._attends else ()

    @property
    def output_layer(self) -> Embedding:
        raise NotImplementedError

    def input_terms(self, tokens: Tensor, side: str) -> dict[str, Tensor]:
        raise NotImplementedError

    def encode(self, source: Sequences) -> Memory:
        return Memory(source.values.float()[:, None], source.layout)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """(P, V) logits: ``project`` hands them on."""
        sources = torch.split(memory.rows[:, 0].long(), list(memory.layout.lengths))
        targets = torch.split(target_in.values, list(target_in.layout.lengths))
        weights = torch.zeros(len(targets), 1, max(map(len, targets)), max(map(len, sources)))
        every = []
        for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
            logits = torch.zeros(len(target), self._size)
            words = source[source != self._eos]
            logits[:, words] = OWED
            for place in range(len(target)):
                missing = sum(word not in target[: place + 1] for word in words)
                logits[place, self._eos] = OWED - self._missed * missing
            for place, token in enumerate(target[1:]):
                same = (source == token).float()
                weights[row, 0, place, : len(source)] = same / same.sum().clamp(min=1)
            every.append(logits)
        if (probe := probes.opened.get()) is not None:
            probe.take_attention("bag", weights)
        return torch.cat(every)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        return hidden if ids is None else hidden[..., ids]

    def start(self, memory: Memory) -> DecodeState:
        raise NotImplementedError

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        raise NotImplementedError
