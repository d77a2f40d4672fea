"""LSTM layers without an encoder: there is no source, and the state carries what was written.

    x_t = E w_t;  h_t^l = LSTM(h_{t-1}^l, h_t^{l-1});  logits = E h_t^L

(Merity et al., 2018: AWD-LSTM; Howard and Ruder, 2018: ULMFiT.) The last layer is as wide as the
embeddings, so that these can also be the output matrix (Inan et al., 2017). Dropout is variational:
one mask for each sequence and place in the model, the same at every step (Gal and Ghahramani,
2016), on embeddings, between layers, before the output, and on h_{t-1}. AWD-LSTM drops elements of
W_hh instead of h_{t-1}, which would need a matrix for each sequence here, and whole words of E;
both are left out.

The model keeps the contract of ``models/interface.py`` like a model that reads: the memory of B
sources has B sequences of length 0.

Shapes: B sources, P packed rows, D width, N rows of a search.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from dragoman.models.decoder import OnlyWriting
from dragoman.models.interface import AttentionLayer, DecodeState, Memory
from dragoman.models.search_states import Carried, CarriedState, Source
from dragoman.models.settings import RecurrentDecoderSettings
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import embed
from dragoman.nn.layers import Stack
from dragoman.nn.layout import Sequences
from dragoman.nn.lstm import Lstm


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
