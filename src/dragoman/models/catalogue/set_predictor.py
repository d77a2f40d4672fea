"""Boxes as a set (Carion et al., 2020, *End-to-end object detection with Transformers*): all boxes
of a picture at once.

    q = the learned queries, as many as boxes are found         (Q, D)
    h = Decoder(q, Encoder(picture)), where each query looks at all others
    P(label) = softmax(h Wᵀ + b), over all labels and nothing;  centre and size = sigmoid(MLP(h))

What it has found is then written as any detector writes (``forms/box_symbols.py``), the surest box
first. A search reads it out symbol by symbol: coordinates are certain, rounded to their places, and
a label has its probability. So searching, serving and measuring are the same for both kinds.

Departures: the front end is whatever ``source.stem`` says, not a ResNet. Positions are added once,
to what the first layer of the encoder reads; the paper adds them, and the queries, in each
attention.

Shapes: B pictures, Q queries, K labels, S symbols of an output, V symbols in all, D width, N rows
of a search, P packed rows.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.forms.box_symbols import PER_BOX, BoxSymbols
from dragoman.models.catalogue.classifier import LabelHead
from dragoman.models.encoding import embed_source, parts_of, read
from dragoman.models.front_ends import SourceInput, front_end
from dragoman.models.interface import AttentionLayer, DecodeState, Memory, Writing
from dragoman.models.settings import TransformerSettings
from dragoman.nn.dropout import Dropout
from dragoman.nn.layers import DecoderLayer, EncoderLayer, Stack
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Linear
from dragoman.nn.positions import Positions


class FoundSet(NamedTuple):
    """What one layer of the decoder says of each query."""

    logits: Tensor
    """(B, Q, K + 1), nothing last."""
    places: Tensor
    """(B, Q, 4): centre across and down, width and height, from 0 to 1 of what is read."""


class SetPredictor(Writing):
    """Encoder, queries, decoder, and two heads over it."""

    settings: TransformerSettings
    plain_only: ClassVar[str] = "the one way to find boxes as a set"

    def __init__(
        self, settings: TransformerSettings, source: SourceInput, symbols: BoxSymbols
    ) -> None:
        super().__init__()
        self.settings, self.symbols = settings, symbols
        layer, width = parts_of(settings), settings.model_dim
        self.front_end = front_end(source, width)
        self.source_positions = Positions(settings.positions, width)
        self.dropout = Dropout(settings.dropout)
        self.encoder: Stack[EncoderLayer] = Stack(
            [EncoderLayer(layer, f"encoder.{i}") for i in range(settings.encoder_layers)]
        )
        self.encoder_norm = layer.around.last_norm(width)
        self.queries = nn.Parameter(torch.randn(symbols.most, width))
        self.decoder: Stack[DecoderLayer] = Stack(
            [DecoderLayer(layer, f"decoder.{i}") for i in range(settings.decoder_layers)]
        )
        self.decoder_norm = layer.around.last_norm(width)
        self.label = LabelHead(width, len(symbols.labels) + 1)
        self.place = nn.ModuleList(
            [LabelHead(before, after) for before, after in pairwise((width, width, width, 4))]
        )

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return ()  # queries are no symbols: there is nothing to show them beside

    @property
    def output_layer(self) -> Linear:
        return self.label

    def embedded(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        raise AssertionError("nothing looks into a set predictor")

    def encode(self, source: Sequences) -> Memory:
        assert self.front_end is not None, "boxes are found in pictures"
        width = self.settings.model_dim
        rows = embed_source(source, self.front_end, self.source_positions, self.dropout, width)
        return read(rows, self.encoder, self.encoder_norm, attend_unknown=True)

    # ---- the set

    def found(self, memory: Memory, first_row_keys: Tensor | None = None) -> list[FoundSet]:
        """What each layer of the decoder says, the last one last. ``first_row_keys``: those of the
        queries, for dropout (``nn/layout.py``)."""
        pictures, count = memory.layout.batch, len(self.queries)
        layout = Layout([count] * pictures, memory.rows.device, first_row_keys)
        x = self.queries.to(memory.rows.dtype).repeat(pictures, 1)  # (B Q, D)
        sets = []
        for layer in self.decoder:
            x = layer(x, layout, None, memory.rows, memory.layout, memory.key_mask, causal=False)
            sets.append(self._said(x if self.decoder_norm is None else self.decoder_norm(x), count))
        return sets

    def _said(self, rows: Tensor, count: int) -> FoundSet:
        """(B Q, D) -> what both heads say, in fp32 at least."""
        h = rows.to(torch.promote_types(rows.dtype, torch.float32)).unflatten(0, (-1, count))
        *inner, last = self.place
        y = h
        for linear in inner:
            y = F.relu(linear(y))
        return FoundSet(self.label(h), torch.sigmoid(last(y)))

    # ---- writing it

    def spelled(self, memory: Memory) -> Tensor:
        """(B, S + 1, V): log P of each symbol behind each number of symbols, the end last."""
        logits, places = self.found(memory)[-1]
        symbols, bins = self.symbols, self.symbols.bins
        labels = torch.log_softmax(logits, -1)  # (B, Q, K + 1)
        sure = labels[..., :-1].amax(-1)
        order = torch.sort(sure, dim=-1, descending=True, stable=True).indices  # (B, Q)
        labels = labels.take_along_dim(order[..., None], 1)
        centre, size = places.take_along_dim(order[..., None], 1).split(2, -1)
        begin, end = centre - size / 2, centre + size / 2
        begin = (begin * bins).round().clamp(0, bins - 1)
        end = torch.maximum((end * bins).round().clamp(0, bins), begin + 1)  # no box is empty
        edges = torch.cat([begin.flip(-1), end.flip(-1)], -1).long()  # top, left, bottom, right
        pictures, count = order.shape
        out = labels.new_full((pictures, count, PER_BOX, symbols.size), -math.inf)
        out[..., :-1, :].scatter_(-1, (edges + symbols.places.start)[..., None], 0.0)
        out[..., -1, symbols.classes.start : symbols.nothing + 1] = labels
        last = labels.new_full((pictures, 1, symbols.size), -math.inf)
        last[..., symbols.eos] = 0.0
        return torch.cat([out.flatten(1, 2), last], 1)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """(P, V), whatever is given: a set does not depend on what was written of it."""
        layout = target_in.layout
        return self.spelled(memory)[layout.sequence, layout.positions]

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        return hidden if ids is None else hidden[..., ids]

    def start(self, memory: Memory) -> SetState:
        return SetState(self, memory)

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, SetState)  # a state comes back to the model that made it
        return state.after(tokens.shape[1])


class SetState(DecodeState):
    """The sets of some pictures, and how much of them each row has read out."""

    def __init__(self, model: SetPredictor, memory: Memory) -> None:
        self._model = model
        self._spelled = model.spelled(memory)
        self._sources = torch.arange(len(self._spelled), device=memory.rows.device)
        self._lengths = torch.zeros_like(self._sources)

    @property
    def rows(self) -> int:
        return len(self._sources)

    @property
    def lengths(self) -> Tensor:
        return self._lengths

    def select(self, rows: Tensor) -> None:
        kept, self._sources = torch.unique(self._sources[rows], return_inverse=True)
        self._spelled, self._lengths = self._spelled[kept], self._lengths[rows]

    def admit(self, memory: Memory) -> None:
        new = self._model.spelled(memory)
        numbers = torch.arange(len(new), device=new.device) + len(self._spelled)
        self._spelled = torch.cat([self._spelled, new])
        self._sources = torch.cat([self._sources, numbers])
        self._lengths = F.pad(self._lengths, (0, len(new)))

    def after(self, tokens: int) -> Tensor:
        """(N, V): what follows when each row has taken in so many more."""
        self._lengths = self._lengths + tokens
        return self._spelled[self._sources, self._lengths - 1]
