"""A detector that predicts all boxes of a picture at once, as a set (Carion et al., 2020,
*End-to-end object detection with Transformers*):

    q = the learned queries, as many as boxes are found         (Q, D)
    h = Decoder(q, Encoder(picture)), where each query looks at all others
    P(label) = softmax(h Wᵀ + b), over all labels and nothing;  centre and size = sigmoid(MLP(h))

The result is then written as by any detector (``forms/boxes.py``), the most probable box first.
A search reads it out symbol by symbol: coordinates are certain, rounded to whole places, and a
label has its probability. So searching, serving and measuring are the same for both kinds.

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

from dragoman.forms.boxes import PER_BOX, BoxSymbols
from dragoman.models.encoding import LayeredEncoder, SourceInput, front_end
from dragoman.models.interface import AttentionLayer, DecodeState, Memory, Writing
from dragoman.models.settings import TransformerSettings
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Positions
from dragoman.nn.layers import Around, DecoderLayer, EncoderLayer, stack_of
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Linear, PlainLinear


class FoundSet(NamedTuple):
    """The output of one layer of the decoder for each query."""

    logits: Tensor
    """(B, Q, K + 1): the logits of the labels; "nothing" is the last label."""
    places: Tensor
    """(B, Q, 4): horizontal and vertical centre, width and height, as shares of the picture from 0
    to 1."""


class ReadOut(NamedTuple):
    """The boxes of some pictures, the most probable first, which a search reads out symbol by
    symbol. A table of all symbols would take two megabytes per picture with COCO's labels."""

    labels: Tensor
    """(B, Q, K + 1): the log-probabilities of the labels; "nothing" is the last label."""
    edges: Tensor
    """(B, Q, 4): top, left, bottom and right, from 0 to ``bins``."""


class SetPredictor(LayeredEncoder, Writing):
    """The network of a detector that finds boxes as a set: encoder, learned queries, decoder, and
    two heads, one for labels and one for places."""

    settings: TransformerSettings
    plain_only: ClassVar[str] = "the one way to find boxes as a set"

    def __init__(
        self, settings: TransformerSettings, source: SourceInput, symbols: BoxSymbols
    ) -> None:
        super().__init__()
        self.settings, self.symbols = settings, symbols
        width = settings.model_dim
        self.front_end = front_end(source, width)
        self.source_positions = Positions(settings.positions, width)
        self.dropout = Dropout(settings.dropout)
        self.encoder = stack_of(EncoderLayer, settings, "encoder", settings.encoder_layers)
        self.encoder_norm = Around(settings).last_norm()
        self.queries = nn.Parameter(torch.randn(symbols.most, width))
        self.decoder = stack_of(DecoderLayer, settings, "decoder", settings.decoder_layers)
        self.decoder_norm = Around(settings).last_norm()
        self.label = PlainLinear(width, len(symbols.labels) + 1)
        self.place = nn.ModuleList(
            [PlainLinear(before, after) for before, after in pairwise((width, width, width, 4))]
        )

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return ()  # queries are not symbols, so figures have no labels for them

    @property
    def output_layer(self) -> Linear:
        return self.label

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        raise AssertionError("with boxes.kind = set, attention cannot be inspected")

    # ---- the set

    def layer_outputs(self, memory: Memory, first_row_keys: Tensor | None = None) -> list[FoundSet]:
        """Return the output of each layer of the decoder, in order. ``first_row_keys``: for each
        picture, the number from which the dropout masks of its queries are drawn
        (``nn/layout.py``)."""
        pictures, count = memory.layout.batch, len(self.queries)
        layout = Layout([count] * pictures, memory.rows.device, first_row_keys)
        x = self.queries.to(memory.rows.dtype).repeat(pictures, 1)  # (B Q, D)
        sets = []
        for layer in self.decoder:
            x = layer(x, layout, None, memory.rows, memory.layout, memory.key_mask, causal=False)
            sets += [self._heads(x if self.decoder_norm is None else self.decoder_norm(x), count)]
        return sets

    def _heads(self, rows: Tensor, count: int) -> FoundSet:
        """Compute the output of both heads from ``rows`` (B Q, D) of the decoder, in fp32 or a
        higher precision. ``count``: Q, the number of queries."""
        h = rows.to(torch.promote_types(rows.dtype, torch.float32)).unflatten(0, (-1, count))
        *inner, last = self.place
        y = h
        for linear in inner:
            y = F.relu(linear(y))
        return FoundSet(self.label(h), torch.sigmoid(last(y)))

    # ---- writing it

    def read_out(self, memory: Memory) -> ReadOut:
        """Return the boxes that the last layer of the decoder finds, the most probable first. Each
        has an area above 0."""
        logits, places = self.layer_outputs(memory)[-1]
        bins, labels = self.symbols.bins, torch.log_softmax(logits, -1)  # (B, Q, K + 1)
        sure = labels[..., :-1].amax(-1)
        order = torch.sort(sure, dim=-1, descending=True, stable=True).indices  # (B, Q)
        centre, size = places.take_along_dim(order[..., None], 1).split(2, -1)
        begin, end = centre - size / 2, centre + size / 2
        begin = (begin * bins).round().clamp(0, bins - 1)
        end = torch.maximum((end * bins).round().clamp(0, bins), begin + 1)  # no box is empty
        edges = torch.cat([begin.flip(-1), end.flip(-1)], -1).long()  # top, left, bottom, right
        return ReadOut(labels.take_along_dim(order[..., None], 1), edges)

    def score_symbols(self, read: ReadOut, pictures: Tensor, at: Tensor) -> Tensor:
        """Return (N, V): log P of the next symbol of N rows of a search. ``pictures`` (N,): the
        picture of each row; ``at`` (N,): how many symbols the row has read out."""
        symbols, count = self.symbols, read.labels.shape[1]
        box, part = (at // PER_BOX).clamp(max=count - 1), at % PER_BOX
        is_end = at == PER_BOX * count
        is_label = (part == PER_BOX - 1) & ~is_end
        is_edge = ~is_label & ~is_end
        out = read.labels.new_full((len(at), symbols.size), -math.inf)
        edges = read.edges[pictures[is_edge], box[is_edge], part[is_edge]] + symbols.places.start
        out[is_edge.nonzero().squeeze(1), edges] = 0.0
        labels = read.labels[pictures[is_label], box[is_label]]
        out[is_label, symbols.classes.start : symbols.nothing + 1] = labels
        out[is_end, symbols.eos] = 0.0
        return out

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Return (P, V): log P of each symbol. Only the length of the target matters, because the
        boxes do not depend on it."""
        layout = target_in.layout
        return self.score_symbols(self.read_out(memory), layout.sequence, layout.positions)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        return hidden if ids is None else hidden[..., ids]

    def start(self, memory: Memory) -> SetState:
        return SetState(self, memory)

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, SetState)  # a state comes back to the model that made it
        return state.after(tokens.shape[1])


class SetState(DecodeState):
    """The boxes of some pictures, and how many symbols each row has read out."""

    def __init__(self, model: SetPredictor, memory: Memory) -> None:
        self._model = model
        self._read = model.read_out(memory)
        self._sources = torch.arange(len(self._read.labels), device=memory.rows.device)
        self._lengths = torch.zeros_like(self._sources)

    @property
    def lengths(self) -> Tensor:
        return self._lengths

    def select(self, rows: Tensor) -> None:
        kept, self._sources = torch.unique(self._sources[rows], return_inverse=True)
        self._read = ReadOut(*(part[kept] for part in self._read))
        self._lengths = self._lengths[rows]

    def admit(self, memory: Memory) -> None:
        new, before = self._model.read_out(memory), len(self._read.labels)
        numbers = torch.arange(len(new.labels), device=memory.rows.device) + before
        self._read = ReadOut(*map(torch.cat, zip(self._read, new, strict=True)))
        self._sources = torch.cat([self._sources, numbers])
        self._lengths = F.pad(self._lengths, (0, len(numbers)))

    def after(self, tokens: int) -> Tensor:
        """Return (N, V): log P of the next symbol of each row, after the row has read ``tokens``
        more symbols."""
        self._lengths = self._lengths + tokens
        return self._model.score_symbols(self._read, self._sources, self._lengths - 1)
