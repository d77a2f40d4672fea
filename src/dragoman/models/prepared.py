"""A network prepared for translating on plain torch: its weights laid out once, in bf16 or fp32.

It computes what the network computes, to within rounding: every layer by oneDNN's products
(``nn/inference_linear.py``), the best tokens without sorting all (``candidates.py``). It is a fast
path of the kinds whose networks are ``Advancing`` (``recurrent/fast_paths.py``).
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.models.candidates import COLUMNS, NEVER, best_of
from dragoman.models.interface import Adjust, Advancing, DecodeState, Memory, Model
from dragoman.nn.inference_linear import InferenceLinear
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import prepare


class Prepared(Model):
    """``network`` in ``dtype``. Its matrices are laid out now, so it is to be made anew after a
    change of weights. Teacher forcing (``decode``, ``project``) is done by ``network`` itself.

    Safe to share between threads as long as each state stays with one of them.
    """

    def __init__(self, network: Advancing, dtype: torch.dtype) -> None:
        self._plain = network
        self._network: Advancing = twin(network)
        weight = network.output_layer.weight
        self._vocabulary = len(weight)
        spare = -len(weight) % COLUMNS
        never = torch.zeros(len(weight) + spare)
        never[len(weight) :] = NEVER
        with torch.no_grad():
            prepare(self._network, dtype)
            self._output = InferenceLinear(F.pad(weight, (0, 0, 0, spare)), never, dtype)

    @torch.no_grad()
    def encode(self, source: Sequences) -> Memory:
        return self._network.encode(source)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Teacher forcing, by the plain network."""
        return self._plain.decode(target_in, _precise(memory, self._plain))

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Logits of given hidden rows, by the plain network."""
        return self._plain.project(hidden, ids)

    @torch.no_grad()
    def start(self, memory: Memory) -> DecodeState:
        return self._network.start(memory)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        return self._logits(tokens, state)[:, : self._vocabulary]

    @torch.no_grad()
    def best(
        self, tokens: Tensor, state: DecodeState, k: int, adjust: Adjust | None = None
    ) -> tuple[Tensor, Tensor]:
        if adjust is not None or k > min(COLUMNS, self._vocabulary):
            return super().best(tokens, state, k, adjust)
        return best_of(self._logits(tokens, state), k)

    def _logits(self, tokens: Tensor, state: DecodeState) -> Tensor:
        """(N, V rounded up to whole columns)."""
        return self._output.any_rows(self._network.advance(tokens, state))


def twin(module: Any) -> Any:
    """A module of the same parameters, which may be told to compute otherwise."""
    made = copy.copy(module)
    assert isinstance(made, nn.Module)
    children = module._modules.items()
    made._modules = {name: None if one is None else twin(one) for name, one in children}
    return made


def _precise(memory: Memory, network: nn.Module) -> Memory:
    """As the plain network would have it."""
    dtype = next(network.parameters()).dtype
    return Memory(memory.rows.to(dtype), memory.layout, memory.key_mask, memory.tokens)
