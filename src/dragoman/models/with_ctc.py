"""CTC beside a decoder in a search (Watanabe et al., 2017): each continuation of each hypothesis is
scored by both,

    (1 - λ) · log P(c | g, x) of the decoder + λ · (log ψ(gc) - log ψ(g)) of CTC,

with ψ(g) the probability by CTC that what is said begins with g (``ctc_prefixes.py``). The sum over
a whole text is (1 - λ) log P(y | x) of the decoder + λ log P(y | x) of CTC. What a decoder invents,
repeats or leaves out has little probability by CTC before it is too late.

Any model that generates may be the decoder, run in any way: it is asked for its steps alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dragoman.models.ctc_prefixes import CtcPrefixes
from dragoman.models.interface import Adjust, DecodeState, Generates, Memory
from dragoman.nn.layout import Sequences

Head = Callable[[Tensor], Tensor]
"""CTC of rows that were read: (P, D) -> logits (P, V + 1) of the outputs and the blank."""


class CtcState(DecodeState):
    """A search under way: in the decoder, and by CTC."""

    def __init__(self, state: DecodeState, prefixes: CtcPrefixes, head: Head) -> None:
        self.state = state
        self.prefixes = prefixes
        self._head = head

    @property
    def rows(self) -> int:
        return self.state.rows

    @property
    def lengths(self) -> Tensor:
        return self.state.lengths

    def select(self, rows: Tensor) -> None:
        self.state.select(rows)
        self.prefixes.select(rows)

    def admit(self, memory: Memory) -> None:
        self.state.admit(memory)
        self.hear(memory)

    def hear(self, memory: Memory) -> None:
        """Begin with the recordings of ``memory``."""
        known = torch.log_softmax(self._head(memory.rows).float(), dim=-1)
        self.prefixes.add(known.split(list(memory.layout.lengths)))


class WithCtc(Generates):
    """A decoder and CTC, under the contract of the decoder alone. Its logits are the scores of
    both, which are not normalised: ``best`` keeps them as they are."""

    def __init__(self, model: Generates, head: Head, weight: float, *, eos: int) -> None:
        """``head``: CTC of the rows that ``model`` encodes. ``weight``: λ."""
        self._model = model
        self._head = head
        self._weight = weight
        self._eos = eos

    def encode(self, source: Sequences) -> Memory:
        return self._model.encode(source)

    def start(self, memory: Memory) -> CtcState:
        prefixes = CtcPrefixes(self._eos, memory.rows.device)
        state = CtcState(self._model.start(memory), prefixes, self._head)
        state.hear(memory)
        return state

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CtcState)  # a state comes back to the model that made it
        taken = state.lengths.to(tokens.device, copy=True)
        decoder = torch.log_softmax(self._model.step(tokens, state.state).float(), dim=-1)
        for place, column in enumerate(tokens.T):
            state.prefixes.extend(column, taken + place > 0)  # nobody says the begin symbol
        ctc = state.prefixes.following().to(decoder.dtype)
        return (1 - self._weight) * decoder + self._weight * ctc

    def best(
        self, tokens: Tensor, state: DecodeState, k: int, adjust: Adjust | None = None
    ) -> tuple[Tensor, Tensor]:
        scores = self.step(tokens, state)
        if adjust is not None:
            scores = adjust(scores)
        return torch.topk(scores, min(k, scores.shape[-1]), dim=-1)
