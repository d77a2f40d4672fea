"""A Transformer in int8 for callers that use torch.

``Int8Transformer`` keeps the contract of ``models/interface.py``: it encodes, starts and steps by
``int8_search.py``, which a search can also call directly. The plain model computes teacher forcing
(``decode``, ``project``). It also reads sources of rows, and the kernels then decode with its
memory.

The kernels are in ``native/src/decode*``. The plain model is the reference for their results.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.models.interface import DecodeState, Memory, Model
from dragoman.models.searched import Constrain
from dragoman.models.settings import TransformerSettings
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer.int8_search import Int8Search, Int8Searching, why_never
from dragoman.models.transformer.int8_weights import Int8Model
from dragoman.models.transformer.model import Transformer
from dragoman.native import decoder, library, loader
from dragoman.native.abi import Step
from dragoman.nn.layout import Sequences
from dragoman.nn.settings import AttentionSettings


class Int8State(DecodeState):
    """The state of a search in native memory. Only one thread at a time may use a state; several
    states may be used at once."""

    def __init__(self, search: Int8Search) -> None:
        self.searching = Int8Searching(search)

    @property
    def lengths(self) -> Tensor:
        out = np.empty(self.searching.state.rows, np.int64)
        self.searching.state.lengths(out)
        return torch.from_numpy(out)

    def select(self, rows: Tensor) -> None:
        self.searching.select(rows.numpy())

    def admit(self, memory: Memory) -> None:
        key_mask = None if memory.key_mask is None else _array(memory.key_mask, np.uint8)
        tokens = None if memory.tokens is None else _array(memory.tokens, np.int64)
        lengths = np.array(memory.layout.lengths, np.int32)
        self.searching.state.admit(_array(memory.rows, np.float32), lengths, key_mask, tokens)

    def native(self, k: int, length: int) -> Step | None:
        return self.searching.native(k, length)


class Int8Transformer(Model):
    """``model`` in int8. Its weights are packed now; later changes to ``model`` have no effect.

    Threads may share it, if each state stays within one thread. ``why_not`` must have returned None
    for its settings.
    """

    def __init__(self, model: Transformer, shortlist: Shortlist | None = None) -> None:
        """``shortlist``: the target tokens to score, as in ``Int8Search``."""
        self.model = model
        self.settings = model.settings
        named = {name: w.detach().numpy() for name, w in model.named_parameters()}
        if model.front_end is not None:  # kernels want a table, and look nothing up in this one
            named["source_embedding.weight"] = np.zeros((1, model.settings.model_dim), np.float32)
        source = len(named["source_embedding.weight"])
        packed = Int8Model.of(model.settings, source, len(model.output_layer.weight), named)
        self.search = Int8Search(packed, shortlist)
        """The model, as a search calls it."""

    # ---- reading

    def encode(self, source: Sequences) -> Memory:
        """Encode packed ids or rows. Return a memory with fp32 rows (P, D)."""
        if self.model.front_end is not None:
            with torch.no_grad():
                memory = self.model.encode(source)
            return replace(memory, rows=memory.rows.float())  # of a model that trains in bf16
        lengths = np.array(source.layout.lengths, np.int32)
        rows, mask = self.search.encode(_array(source.values, np.int64), lengths)
        key_mask = None if mask is None else torch.from_numpy(mask)
        return Memory(torch.from_numpy(rows), source.layout, key_mask, source.values)

    # ---- writing

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Compute teacher forcing with the plain model."""
        return self.model.decode(target_in, memory)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Compute logits of given hidden rows with the plain model."""
        return self.model.project(hidden, ids)

    def start(self, memory: Memory) -> Int8State:
        state = Int8State(self.search)
        state.admit(memory)
        return state

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, Int8State)  # a state comes back to the model that made it
        return torch.from_numpy(self.search.step(tokens.numpy(), state.searching.state))

    def best(
        self, tokens: Tensor, state: DecodeState, k: int, constrain: Constrain | None = None
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(state, Int8State)
        scores, ids = self.search.best(tokens.numpy(), state.searching.state, k, constrain)
        return torch.from_numpy(scores), torch.from_numpy(ids)


def _array(tensor: Tensor, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return a tensor as an array that the kernels can read. It shares the tensor's memory if it
    can."""
    return np.ascontiguousarray(tensor.detach().numpy(), dtype)


# ---- whether it can be had


def why_not(settings: TransformerSettings) -> str | None:
    """Return the reason why the native int8 kernels cannot run such a model here; None if they
    can."""
    return why_never(settings) or why_not_here()


def why_not_here() -> str | None:
    """Return the reason why the native int8 kernels cannot run any model on this machine; None if
    they can run some."""
    if not library.available():
        return library.status().reason
    if not decoder.is_supported():
        return "the native library has no int8 decoder for this processor"
    level = loader.level_in_use()
    return None if _agrees(level) else "its kernels do not agree with plain torch on this machine"


@cache
def _agrees(level: str | None) -> bool:
    """Return True if the kernels of the level in use and plain torch compute the same logits for
    one tiny model. This is tested once per process for each level."""
    attention = AttentionSettings(num_heads=2)
    settings = TransformerSettings(
        model_dim=32, ffn_dim=64, encoder_layers=1, decoder_layers=1, attention=attention
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        plain = Transformer(settings, 70, 70).eval()
        source = Sequences.of([torch.arange(3, 10), torch.arange(20, 22)])
        tokens = torch.tensor([[1, 5, 9], [1, 60, 3]])
        fast = Int8Transformer(plain)
        expected = plain.step(tokens, plain.start(plain.encode(source)))
        logits = fast.step(tokens, fast.start(fast.encode(source)))
        return bool((logits - expected).norm() < 0.05 * expected.norm())
