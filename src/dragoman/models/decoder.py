"""Models without an encoder: there is no source, and each token follows from those before it.

``Decoder`` is a Transformer's decoder, in which a token attends to the earlier ones:

    x = x + SelfAttention(LayerNorm(x));  x = x + FFN(LayerNorm(x))          (pre-norm)

(Radford et al., 2018 and 2019: GPT's shape; paper §3.2.3 for the mask.) ``RecurrentDecoder`` has
LSTM layers, whose state carries what was written:

    x_t = E w_t;  h_t^l = LSTM(h_{t-1}^l, h_t^{l-1});  logits = E h_t^L

(Merity et al., 2018: AWD-LSTM; Howard and Ruder, 2018: ULMFiT.) The last layer is as wide as the
embeddings, so that these can also be the output matrix (Inan et al., 2017). Dropout is variational:
one mask for each sequence and place in the model, the same at every step (Gal and Ghahramani,
2016), on embeddings, between layers, before the output, and on h_{t-1}. AWD-LSTM drops elements of
W_hh instead of h_{t-1}, which would need a matrix for each sequence here, and whole words of E;
both are left out.

Both keep the contract of ``interface.py`` like a model that reads: the memory of B sources has B
sequences of length 0.

Shapes: B sources, P packed rows, D width, N rows of a search, t new tokens.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from dragoman.models.interface import Advancing, AttentionLayer, DecodeState, Memory
from dragoman.models.search_states import CachedState, Carried, CarriedState, Source
from dragoman.models.settings import DecoderSettings, RecurrentDecoderSettings
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Embedding, Positions, embed
from dragoman.nn.layers import Around, EncoderLayer, Stack, stack_of
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Linear
from dragoman.nn.lstm import Lstm


class OnlyWriting(Advancing):
    """A model without an encoder. It has an embedding and an output layer, and its sources are
    empty."""

    def __init__(
        self, settings: DecoderSettings | RecurrentDecoderSettings, target_vocabulary: int
    ) -> None:
        super().__init__()
        self.settings, width = settings, settings.model_dim
        self.embedding = Embedding(target_vocabulary, width)
        self.output = None if settings.tie else Linear(width, target_vocabulary, bias=False)

    @property
    def output_layer(self) -> Embedding | Linear:
        return self.embedding if self.output is None else self.output

    def encode(self, source: Sequences) -> Memory:
        """Return a memory of B sources without any rows."""
        layout, table = source.layout, self.embedding
        # What a search keeps is of the precision that the layers compute in.
        dtype, width = table.cast or table.weight.dtype, table.weight.shape[1]
        none = torch.empty(0, width, dtype=dtype, device=layout.device)
        return Memory(none, Layout([0] * layout.batch, layout.device))


class Decoder(OnlyWriting):
    """A Transformer decoder without an encoder: an embedding, layers, and an output."""

    settings: DecoderSettings

    def __init__(
        self, settings: DecoderSettings, source_vocabulary: int, target_vocabulary: int
    ) -> None:
        """``source_vocabulary`` is not used, since there is no source."""
        super().__init__(settings, target_vocabulary)
        width = settings.model_dim
        self.positions = Positions(settings.positions, width)
        self.dropout = Dropout(settings.dropout)
        self.layers = stack_of(EncoderLayer, settings, "layers", settings.layers)
        self.norm = Around(settings).last_norm()

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        attentions = [layer.attention for layer in self.layers]
        return tuple(
            AttentionLayer("decoder", number, attention.heads, attention.scale, attention.name)
            for number, attention in enumerate(attentions)
        )

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        layout = target_in.layout
        x = self._embed(target_in.values, layout.positions, layout.row_keys)
        for layer in self.layers:
            x = layer(x, layout, causal=True)
        return x if self.norm is None else self.norm.forward(x)

    def start(self, memory: Memory) -> CachedState:
        return CachedState(self._no_sources, memory)

    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CachedState)  # a state comes back to the model that made it
        cache, new = state.cache, tokens.shape[1]
        x = self._embed(tokens.flatten(), cache.places(new).flatten())  # (N x t, D)
        cache.begin(None, new)
        for layer, past in zip(self.layers, cache.layers, strict=True):
            x = layer.step(x, new, past)
        cache.end(new)
        x = x.unflatten(0, (-1, new))[:, -1]  # (N, D)
        return x if self.norm is None else self.norm.forward(x)

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        word = self.embedding(tokens) * self.settings.embedding_scale
        place = self.positions(torch.arange(len(tokens)), None, word.dtype)
        return {"embedding": word, "position": place, "sum": word + place}

    def _no_sources(self, memory: Memory) -> tuple[list[tuple[Tensor, Tensor]], None]:
        """Return keys and values of length 0 for each layer."""
        rows, batch = memory.rows, memory.layout.batch
        sources = []
        for attention in (layer.attention for layer in self.layers):
            key = rows.new_zeros(batch, attention.heads, 0, attention.key_width)
            value = rows.new_zeros(batch, attention.heads, 0, attention.value_width)
            sources.append((key, value))
        return sources, None

    def _embed(self, tokens: Tensor, positions: Tensor, row_keys: Tensor | None = None) -> Tensor:
        return embed(
            tokens, self.embedding, self.dropout, scale=self.settings.embedding_scale,
            positions=positions, encoding=self.positions, row_keys=row_keys,
        )  # fmt: skip


class RecurrentDecoder(OnlyWriting):
    """LSTM layers without an encoder: an embedding, layers, and an output."""

    settings: RecurrentDecoderSettings

    def __init__(
        self, settings: RecurrentDecoderSettings, source_vocabulary: int, target_vocabulary: int
    ) -> None:
        """``source_vocabulary`` is not used, since there is no source."""
        super().__init__(settings, target_vocabulary)
        widths = (settings.model_dim, *settings.widths)
        self.layers: Stack[Lstm] = Stack(
            [Lstm(inputs, outputs) for inputs, outputs in pairwise(widths)]
        )
        self.dropout = Dropout(settings.dropout)
        self.embedding_dropout = Dropout(settings.embedding_dropout)
        self.recurrent_dropout = Dropout(settings.recurrent_dropout)

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return ()

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        layout = target_in.layout
        sequences = layout.sequence_keys if self.training else None
        rows = None if sequences is None else sequences[layout.sequence]
        x = self._embed(target_in.values, rows)
        for layer in self.layers:
            x, _ = layer(layer.read(x), layout, kept=self._recurrent_mask(layer.width, sequences))
            x = self.dropout.forward(x, rows)
        return x

    def start(self, memory: Memory) -> CarriedState:
        return CarriedState(self._begin, memory)

    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CarriedState)  # a state comes back to the model that made it
        x = tokens  # (N, t), of which t is at least 1
        for column in tokens.unbind(dim=1):
            x, carried = self._embed(column), list[Tensor]()
            for number, layer in enumerate(self.layers):
                hidden, cell = state.carried[2 * number : 2 * number + 2]
                x, cell = layer.step(layer.read(x), hidden[0], cell[0])
                carried += [x[None], cell[None]]
            state.store(tuple(carried))
        return x

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        return {"embedding": self._embed(tokens)}

    def _begin(self, memory: Memory) -> tuple[Carried, Source]:
        """Return the initial state: the hidden vectors and then the cells (1, B, H) of each layer.
        Cells are never of low precision."""
        rows, carried = memory.rows, list[Tensor]()
        for layer in self.layers:
            hidden = rows.new_zeros(1, memory.layout.batch, layer.width)
            carried += [hidden, hidden.to(self.embedding.weight.dtype)]
        return tuple(carried), Source.of(memory, rows, rows)

    def _embed(self, tokens: Tensor, row_keys: Tensor | None = None) -> Tensor:
        return embed(tokens, self.embedding, self.embedding_dropout, row_keys=row_keys)

    def _recurrent_mask(self, width: int, row_keys: Tensor | None) -> Tensor | None:
        """Return the factors (B, H) of hidden vectors between one step and the next; None if there
        are none."""
        if row_keys is None or not self.recurrent_dropout.rate:
            return None
        ones = torch.ones(len(row_keys), width, device=row_keys.device)
        return self.recurrent_dropout.forward(ones, row_keys)
