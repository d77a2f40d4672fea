"""A recurrent encoder–decoder with attention, the kind of model that the paper's Transformer
replaced.

    h_t = LSTM(h_{t-1}, x_t)                           (Hochreiter and Schmidhuber, 1997)
    a_t = attention(h_t, M)                            (``SourceAttention``)
    o_t = tanh(W_c [a_t; h_t])                         (Luong et al., 2015, equation 5)

M is the encoder's output. The first layer of the encoder reads in both directions (Bahdanau et al.,
2015), each half as wide as the model; further layers have residual connections (Wu et al., 2016).
All layers of the decoder begin with tanh(W · mean of M). Its attention is in one of two places:

- ``attends = "last"``: h_t is the last layer's, and o_t goes to the output. With input feeding
  (Luong et al., §3.3) the first layer reads o_{t-1} with the token.
- ``attends = "first"`` (GNMT: Wu et al., 2016, §3): h_t is the first layer's, and all further
  layers read a_t with the layer below. With input feeding the first layer reads a_{t-1}. (As
  published, all layers read a_{t-1}: here the further ones have what is newest.)

Without input feeding, a layer computes all of its steps before the next layer begins.

Shapes: B sources, P packed rows, D width, N rows of a search, L layers of the decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.models.encoding import EncoderDecoder, SourceInput
from dragoman.models.interface import AttentionLayer, DecodeState, Memory
from dragoman.models.search_states import CarriedState, Looking, Source, look, seen_by_probe
from dragoman.models.settings import RecurrentSettings
from dragoman.native import attention as native
from dragoman.native.additive import additive_scores
from dragoman.nn import probes
from dragoman.nn.attention import softmax
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Embedding, embed
from dragoman.nn.layers import Stack
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Computing, Linear
from dragoman.nn.lstm import Lstm
from dragoman.nn.recurrence import Steps


class Energy(Computing):
    """Additive attention with its vector v."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, width))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, query: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Attend from queries (B, R, D) to a source. Return the weighted sums of values (B, R, D),
        and the weights (B, R, S)."""
        scores = additive_scores(query, source.keys, self.weight[0], source.allowed)
        weights = softmax(scores, source.allowed[:, None])
        return weights @ source.values, weights


CROSS = "decoder.attention"
"""The name of the model's only attention for probes."""

Look = Callable[[Tensor], Tensor]
"""A function from rows of the decoder to the attention's results for them, of the same shape."""


class Carried(NamedTuple):
    """The state that one step passes to the next."""

    hidden: Tensor
    """(L, N, D): hidden vectors of the layers."""
    cell: Tensor
    """(L, N, D): cells, never of low precision."""
    fed: Tensor
    """(1, N, D): with input feeding, the result of the attention at the step before; without,
    (0, N, D)."""


class Recurrent(EncoderDecoder):
    """An LSTM encoder and an LSTM decoder, with one attention between them."""

    settings: RecurrentSettings

    def __init__(
        self, settings: RecurrentSettings, source_vocabulary: SourceInput, target_vocabulary: int
    ) -> None:
        super().__init__(settings, source_vocabulary, target_vocabulary)
        width = settings.model_dim
        self.encoder: Stack[Lstm] = Stack(
            [Lstm(width, width // 2, both_ways=True)]
            + [Lstm(width, width) for _ in range(1, settings.encoder_layers)]
        )
        self.decoder: Stack[Lstm] = Stack(
            [
                Lstm(width, width, context=width if settings.reads_context(number) else 0)
                for number in range(settings.decoder_layers)
            ]
        )
        self.first = Linear(width, settings.decoder_layers * width)
        kind = settings.attention
        self.query = None if kind == "dot" else Linear(width, width, bias=False, hidden=True)
        self.key = Linear(width, width, hidden=True) if kind == "additive" else None
        self.energy = Energy(width) if kind == "additive" else None
        self.combine = Linear(2 * width, width, hidden=True) if settings.attends == "last" else None
        self.dropout = Dropout(settings.dropout)
        self.looking = Looking()

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return (AttentionLayer("cross", 0, 1, self._scale, CROSS),)

    # ---- reading

    def encode(self, source: Sequences) -> Memory:
        probe = probes.opened.get()
        if self.front_end is None:
            layout = source.layout
            x = self._embed(self.source_embedding, source.values, layout)
        else:
            read = self.front_end(source)
            layout, x = read.layout, self._drop(read.values, read.layout)
        for number, layer in enumerate(self.encoder):
            out, _ = layer(layer.read(x), layout, kept=self._recurrent_mask(layout))
            out = self._drop(out, layout)
            x = out + x if number else out
        key_mask = None if probe is None else probe.source_key_mask(layout.positions)
        return Memory(x, layout, key_mask)

    # ---- writing

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        layout = target_in.layout
        x = self._embed(self.written_embedding, target_in.values, layout)
        if self.settings.input_feeding:
            return self._token_by_token(x, layout, memory)
        begin, attends = self._begin(memory), self.settings.attends
        context: Tensor | None = None
        for number, layer in enumerate(self.decoder):
            gates = layer.read(x)
            if layer.context is not None:
                assert context is not None
                gates = layer.read_context(context, gates)
            first = begin.hidden[number], begin.cell[number]
            out, _ = layer(gates, layout, first, self._recurrent_mask(layout))
            out = self._drop(out, layout)
            x = out + x if number else out
            if number == 0 and attends == "first":
                context = self._drop(self._look_over(x, layout, memory), layout)
        if attends == "first":
            return x
        return self._drop(self._combine(x, self._look_over(x, layout, memory)), layout)

    def start(self, memory: Memory) -> CarriedState:
        return CarriedState(lambda new: (self._begin(new), self._source(new)), memory)

    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CarriedState)  # a state comes back to the model that made it
        queries = state.queries

        def look_over(rows: Tensor) -> Tensor:
            query, energy = self._query(rows), self.energy
            vector = None if energy is None else energy.weight[0]
            seen = self.looking(query, queries, state.source, scale=self._scale, energy=vector)
            if seen is not None:
                return seen
            context, _ = self._attend(queries.pad(query), state.source)
            return queries.pack(context)

        out = tokens  # (N, t), of which t is at least 1
        for column in tokens.unbind(dim=1):
            x = self._embed(self.written_embedding, column)
            out, carried = self._advance(self._read(x), Carried(*state.carried), look_over)
            state.store(carried)
        return out

    # ---- inside

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        embedding = self.source_embedding if side == "source" else self.written_embedding
        return {"embedding": self._embed(embedding, tokens)}

    @property
    def _scale(self) -> float:
        return 1.0 if self.energy is not None else float(self.settings.model_dim**-0.5)

    def _embed(self, embedding: Embedding, tokens: Tensor, layout: Layout | None = None) -> Tensor:
        """Embed tokens, (P,) -> (P, D), with unit variance like the embeddings of a Transformer.
        ``layout``: that of the rows, for dropout."""
        row_keys = None if layout is None else self._row_keys(layout)
        return embed(tokens, embedding, self.dropout, row_keys=row_keys)

    # Decoder

    def _begin(self, memory: Memory) -> Carried:
        """Return the initial state of the decoder, with a row for each source."""
        layout, precise = memory.layout, self.first.weight.dtype
        lengths = torch.tensor(layout.lengths, device=layout.device)[:, None]
        sums = memory.rows.new_zeros(layout.batch, memory.rows.shape[1], dtype=precise)
        sums = sums.index_add(0, layout.sequence, memory.rows.to(precise))
        first = torch.tanh(self.first(sums / lengths)).to(memory.rows.dtype)  # (B, L x D)
        hidden = first.unflatten(-1, (len(self.decoder), -1)).transpose(0, 1)
        fed = hidden.new_zeros(int(self.settings.input_feeding), *hidden.shape[1:])
        return Carried(hidden, torch.zeros_like(hidden, dtype=precise), fed)

    def _read(self, x: Tensor) -> Tensor:
        """Return the contribution (..., 4D) of embedded tokens (..., D) to the gates of the first
        layer."""
        return next(iter(self.decoder)).read(x)

    def _advance(
        self,
        gates: Tensor,
        carried: Carried,
        look_over: Look,
        drops: Sequence[Tensor] = (),
        kept: Sequence[Tensor] = (),
    ) -> tuple[Tensor, Carried]:
        """Take a step by one token. Return the rows (N, D) for the output layer, and the state for
        the next token. ``gates`` (N, 4D): the result of ``_read`` for the token.

        ``drops``: the dropout factors (N, D) after each layer and after the attention; ``kept``
        (N, D): those of the recurrent connection of each layer.
        """
        context = carried.fed[0] if self.settings.input_feeding else None
        x, hiddens, cells = gates, [], []
        for number, layer in enumerate(self.decoder):
            if number:
                gates = layer.read(x)
            if layer.context is not None:
                assert context is not None
                gates = layer.read_context(context, gates)
            before = carried.hidden[number], carried.cell[number]
            hidden, cell = layer.step(gates, *before, kept[number] if kept else None)
            hiddens.append(hidden)
            cells.append(cell)
            out = hidden * drops[number] if drops else hidden
            x = out + x if number else out
            if number == 0 and self.settings.attends == "first":
                context = look_over(x) * drops[-1] if drops else look_over(x)
        if self.combine is not None:
            x = self._combine(x, look_over(x))
            context = x = x * drops[-1] if drops else x
        fed = carried.fed
        if self.settings.input_feeding:
            assert context is not None
            fed = context[None]
        return x, Carried(torch.stack(hiddens), torch.stack(cells), fed)

    def _token_by_token(self, x: Tensor, layout: Layout, memory: Memory) -> Tensor:
        """Compute ``decode`` where the step of a token needs the attention's result of the step
        before."""
        steps, batch = Steps(layout), layout.batch
        gates = self._read(x)[steps.rows]
        source, carried = self._source(memory).select(steps.order), self._begin(memory)
        carried = Carried(*(part[:, steps.order] for part in carried))
        # All masks beforehand: how many there are may not depend on the longest sentence.
        drops: list[Tensor] = []
        kept: list[Tensor] = []
        if self.training and self.dropout.rate:
            ones = torch.ones_like(x)
            drops = [self._drop(ones, layout)[steps.rows] for _ in range(len(self.decoder) + 1)]
            masks = [self._recurrent_mask(layout) for _ in self.decoder]
            kept = [mask[steps.order].to(x.dtype) for mask in masks if mask is not None]
        outs, seen = list[Tensor](), list[Tensor]()

        def look_over(rows: Tensor) -> Tensor:
            """Attend from one row of each source that goes on, and keep the weights."""
            going = source.select(slice(len(rows)))
            context, weights = self._attend(self._query(rows)[:, None], going)
            seen.append(F.pad(weights, (0, 0, 0, 0, 0, batch - len(rows))))
            return context[:, 0]

        for places in steps:
            n = places.stop - places.start
            out, carried = self._advance(
                gates[places],
                Carried(*(part[:, :n] for part in carried)),
                look_over,
                [drop[places] for drop in drops],
                [mask[:n] for mask in kept],
            )
            outs.append(out)
        if probes.opened.get() is not None or probes.guiding.get().name == CROSS:
            # (B, 1, T, S)
            probes.offer_weights(CROSS, torch.cat(seen, dim=1)[steps.ranks][:, None])
        return torch.cat(outs)[steps.places]

    def _combine(self, rows: Tensor, context: Tensor) -> Tensor:
        """Compute equation 5 of Luong et al. from the rows (P, D) of the last layer and of the
        attention. Return (P, D)."""
        assert self.combine is not None
        return torch.tanh(self.combine(torch.cat([context, rows], dim=-1)))

    # Attention

    def _query(self, rows: Tensor) -> Tensor:
        return rows if self.query is None else self.query(rows)

    def _source(self, memory: Memory) -> Source:
        return Source.of(
            memory, memory.rows if self.key is None else self.key(memory.rows), memory.rows
        )

    def _attend(self, query: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Attend from queries (B, R, D) to a source. Return the weighted sums of values (B, R, D),
        and the weights (B, R, S)."""
        if self.energy is not None:
            context, weights = self.energy(query, source)
        else:
            context, weights = look(query, source, self._scale)
        return seen_by_probe(CROSS, context), weights

    def _look_over(self, rows: Tensor, layout: Layout, memory: Memory) -> Tensor:
        """Compute the attention over the sources for all rows (P, D) of the decoder. Return
        (P, D)."""
        query, probe = self._query(rows), probes.opened.get()
        by_kernels = self.written_embedding.packed is not None and self.energy is None
        by_kernels = by_kernels and probes.guiding.get().name != CROSS
        if by_kernels and probe is None and memory.key_mask is None:
            places = layout.offsets, memory.layout.offsets
            tensors = query, memory.rows, memory.rows
            return native.attention(tensors, *places, heads=1, scale=self._scale)
        context, weights = self._attend(layout.pad(query), self._source(memory))
        probes.offer_weights(CROSS, weights[:, None])
        return layout.pack(context)

    # Dropout

    def _row_keys(self, layout: Layout) -> Tensor | None:
        """Return the keys (P,) of rows for dropout. All rows of a sentence have the same key if its
        mask must be the same at every step."""
        if self.settings.dropout_kind == "plain":
            return layout.row_keys
        return layout.sequence_keys[layout.sequence]

    def _drop(self, x: Tensor, layout: Layout) -> Tensor:
        return self.dropout.forward(x, self._row_keys(layout) if self.training else None)

    def _recurrent_mask(self, layout: Layout) -> Tensor | None:
        """Return the factors (B, D) of hidden vectors between one step and the next; None if there
        are none."""
        plain = self.settings.dropout_kind == "plain"
        if plain or not self.training or not self.dropout.rate:
            return None
        ones = torch.ones(layout.batch, self.settings.model_dim, device=layout.device)
        return self.dropout.forward(ones, layout.sequence_keys)
