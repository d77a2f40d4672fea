"""The steps of a Transformer that is prepared for inference on plain torch
(``models/prepared.py``): the fast path where there are no kernels.

They compute the same as ``advance`` of the prepared network, to within rounding, in four fifths of
the time: queries, keys and values come from one product, and keys and values are rarely copied
(``cpu_state.py``). The remaining time is close to that of the products alone.

Shapes: D model width, N rows, n slots (places for rows), t new positions.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.models.interface import DecodeState, Memory
from dragoman.models.prepared import PreparedNetwork
from dragoman.models.transformer.cpu_state import CpuState, Heads, History, Sources, columns, take
from dragoman.models.transformer.model import Transformer
from dragoman.nn.layers import DecoderLayer
from dragoman.nn.linear import InferenceLinear, Linear, SlicedLinear

MOST_IDLE = 8
"""The number of histories of ended searches that are kept, so that later searches can use their
memory."""


class _CpuLayer:
    """The matrices and norms of one decoder layer that a step uses."""

    def __init__(self, layer: DecoderLayer, dtype: torch.dtype) -> None:
        attention, cross, feed = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.joint = _side_by_side(dtype, attention.query, attention.key, attention.value)
        """The map to queries, keys and values: (P, D) -> (P, H x (2 K + Kv))."""
        self.self_output = _side_by_side(dtype, attention.output)
        self.query = _side_by_side(dtype, cross.query)
        self.memory = _side_by_side(dtype, cross.key, cross.value)
        """The map to keys and values of the sources: (P, D) -> (P, H x (K + Kv))."""
        self.cross_output = _side_by_side(dtype, cross.output)
        self._activation = feed.activation
        self._inner = _side_by_side(dtype, feed.inner)
        self._outer = _side_by_side(dtype, feed.outer)
        self.norms = (
            layer.self_attention_norm, layer.cross_attention_norm, layer.feed_forward_norm,
        )  # fmt: skip

    def feed(self, x: Tensor) -> Tensor:
        """Compute equation 2 of the paper: (P, D) -> (P, D)."""
        return self._outer(self._inner(x, then=self._activation))


class PreparedTransformer(PreparedNetwork):
    """A prepared Transformer whose steps are faster than those of other prepared networks."""

    _network: Transformer

    @torch.no_grad()
    def __init__(self, network: Transformer, dtype: torch.dtype) -> None:
        super().__init__(network, dtype)
        network = self._network
        self._dtype = dtype
        self._pre, self._residual = network.settings.norm == "pre", network.settings.residual
        attention = next(iter(network.decoder)).cross_attention
        heads = attention.heads
        self._heads = Heads(heads, attention.scale)
        self._widths = (heads * attention.key_width, heads * attention.value_width)
        self._layers = [_CpuLayer(layer, dtype) for layer in network.decoder]
        self._idle: deque[History] = deque(maxlen=MOST_IDLE)

    @torch.no_grad()
    def start(self, memory: Memory) -> CpuState:
        try:
            history = self._idle.pop()
        except IndexError:
            history = History(self._widths * len(self._layers))
        hides, next_word = not self._network.settings.attend_unknown, self._network.next_word
        state = CpuState(self._heads, history, self._sources_of, hides=hides, next_word=next_word)
        weakref.finalize(state, self._idle.append, history)
        state.admit(memory)
        return state

    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CpuState)  # a state comes back to the model that made it
        network, new = self._network, tokens.shape[1]
        next_words = None if state.following is None else state.following.next_word_rows(tokens)
        tokens = state.spread(tokens)
        x = network.embed_target(tokens.flatten(), state.begin(tokens).flatten())  # (n x t, D)
        if next_words is not None:
            x = x + state.spread(next_words.unflatten(0, (-1, new))).flatten(0, 1)
        for i, layer in enumerate(self._layers):
            sublayers: tuple[Callable[[Tensor], Tensor], ...] = (
                partial(self._look_back, i, layer, state),
                partial(self._look_over, i, layer, state),
                layer.feed,
            )
            for sublayer, norm in zip(sublayers, layer.norms, strict=True):
                added = sublayer(norm.forward(x) if self._pre else x)
                x = x + added if self._residual else added
                x = x if self._pre else norm.forward(x)
        x = take(x.unflatten(0, (-1, new))[:, -1], state.standing)  # (N, D)
        return x if network.decoder_norm is None else network.decoder_norm.forward(x)

    def _look_back(self, i: int, layer: _CpuLayer, state: CpuState, x: Tensor) -> Tensor:
        heads = self._heads
        query, key, value = layer.joint(x).split((self._widths[0], *self._widths), dim=1)
        keys, values = state.append(i, key, value)
        context = heads.attend(heads.split(query, len(state.starts)), keys, values, state.mask)
        return layer.self_output(heads.join(context, self._dtype))

    def _look_over(self, i: int, layer: _CpuLayer, state: CpuState, x: Tensor) -> Tensor:
        heads, sources = self._heads, state.sources
        assert sources is not None
        query = heads.split(take(layer.query(x), state.cells, state.new), len(sources.allowed))
        context = heads.attend(query, sources.keys[i], sources.values[i], state.source_mask)
        return layer.cross_output(take(heads.join(context, self._dtype), state.places, state.new))

    def _sources_of(self, memory: Memory) -> Sources:
        """Return the keys and values of the sources in every layer."""
        layout, heads = memory.layout, self._heads
        allowed = layout.mask if memory.key_mask is None else layout.pad(memory.key_mask)
        spare = columns(layout.longest) - layout.longest
        keys, values = [], []
        for layer in self._layers:
            rows = layer.memory.any_rows(memory.rows)
            grid = F.pad(layout.pad(rows), (0, 0, 0, spare))  # (B, S, H x (K + Kv))
            key, value = grid.flatten(0, 1).split(self._widths, dim=1)
            keys.append(heads.split(key, layout.batch))
            values.append(heads.split(value, layout.batch))
        return Sources(keys, values, F.pad(allowed, (0, spare)), memory.key_mask is not None)


def _side_by_side(dtype: torch.dtype, *layers: Linear | SlicedLinear) -> InferenceLinear:
    """Join linear maps of the same input into one."""
    # Of sliced maps each head sees a slice of its input alone.
    weights: list[Tensor] = [
        w if (w := layer.weight).dim() == 2 else torch.block_diag(*w) for layer in layers
    ]
    biases: list[Tensor] = [layer.bias for layer in layers if layer.bias is not None]
    return InferenceLinear(torch.cat(weights), torch.cat(biases), dtype)
