"""A recurrent encoder–decoder with attention: what the paper's Transformer took the place of.

    h_t = LSTM(h_{t-1}, x_t)                           (Hochreiter and Schmidhuber, 1997)
    a_t = softmax(h_t W_a M)                           (Luong et al., 2015, "general", §3.1)
    o_t = tanh(W_c [a_t M; h_t])                       (the same, equation 5; no input feeding)

The first layer of the encoder reads in both directions (Bahdanau et al., 2015); further layers add
to what they read (Wu et al., 2016). The decoder begins with tanh(W · mean of M) in every layer.

Shapes: B sources, P packed rows, D width, N rows of a search, L layers of the decoder.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.models.interface import AttentionLayer, DecodeState, Memory, Network
from dragoman.models.settings import RecurrentSettings
from dragoman.nn import masks, probes
from dragoman.nn.attention import scaled_dot_product
from dragoman.nn.dropout import Dropout
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Embedding, Linear

CROSS = "decoder.attention"
"""What probes know its one attention by."""


class RecurrentState(DecodeState):
    """A search under way: a hidden and a cell vector per layer and row, and the sources."""

    def __init__(self, model: Recurrent, memory: Memory) -> None:
        self._model = model
        self.hidden, self.cell = model.begin(memory)  # (L, N, D) each
        self._lengths = torch.zeros(memory.layout.batch, dtype=torch.int64)
        self.counts = [1] * memory.layout.batch
        self.memory = memory

    @property
    def rows(self) -> int:
        return len(self._lengths)

    @property
    def lengths(self) -> Tensor:
        return self._lengths

    def moved(self, hidden: Tensor, cell: Tensor, new: int) -> None:
        """Every row has taken in ``new`` tokens."""
        self.hidden, self.cell, self._lengths = hidden, cell, self._lengths + new

    def select(self, rows: Tensor) -> None:
        owners = torch.arange(len(self.counts)).repeat_interleave(torch.tensor(self.counts))
        kept, counts = torch.unique_consecutive(owners[rows.cpu()], return_counts=True)
        self.hidden, self.cell = self.hidden[:, rows], self.cell[:, rows]
        self._lengths = self._lengths[rows.cpu()]
        if kept.tolist() != list(range(len(self.counts))):
            self.memory = self.memory.select(kept.tolist())
        self.counts = counts.tolist()

    def admit(self, memory: Memory) -> None:
        hidden, cell = self._model.begin(memory)
        self.hidden = torch.cat([self.hidden, hidden], dim=1)
        self.cell = torch.cat([self.cell, cell], dim=1)
        self._lengths = F.pad(self._lengths, (0, memory.layout.batch))
        self.counts += [1] * memory.layout.batch
        self.memory = Memory.join(self.memory, memory)


class Recurrent(Network):
    """LSTM encoder, LSTM decoder, one attention between them."""

    settings: RecurrentSettings

    def __init__(
        self, settings: RecurrentSettings, source_vocabulary: int, target_vocabulary: int
    ) -> None:
        super().__init__()
        self.settings = settings
        width, tie = settings.model_dim, settings.tie
        self.source_embedding = Embedding(source_vocabulary, width)
        self.target_embedding = None if tie == "all" else Embedding(target_vocabulary, width)
        self.output = Linear(width, target_vocabulary, bias=False) if tie == "none" else None
        both_ways = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        further = [
            nn.LSTM(width, width, batch_first=True) for _ in range(1, settings.encoder_layers)
        ]
        self.encoder = nn.ModuleList([both_ways, *further])
        self.decoder = nn.ModuleList(
            nn.LSTM(width, width, batch_first=True) for _ in range(settings.decoder_layers)
        )
        self.first = Linear(width, settings.decoder_layers * width)
        self.query = Linear(width, width, bias=False)
        self.combine = Linear(2 * width, width)
        self.dropout = Dropout(settings.dropout)

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return (AttentionLayer("cross", 0, 1, self._scale, CROSS),)

    @property
    def output_layer(self) -> Embedding | Linear:
        return self._target_embedding if self.output is None else self.output

    # ---- reading

    def encode(self, source: Sequences) -> Memory:
        layout, probe = source.layout, probes.probe()
        x = self._embed(self.source_embedding, source.values, layout.names)
        for number, layer in enumerate(self.encoder):
            grid = nn.utils.rnn.pack_padded_sequence(
                layout.pad(x), torch.tensor(layout.lengths), batch_first=True, enforce_sorted=False
            )
            out, _ = nn.utils.rnn.pad_packed_sequence(layer(grid)[0], batch_first=True)
            read = self.dropout.forward(layout.pack(out), layout.names)
            x = read + x if number else read
        key_mask = None if probe is None else probe.source_key_mask(layout.positions)
        return Memory(x, layout, key_mask)

    # ---- writing

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        layout, names = target_in.layout, target_in.layout.names
        x = self._embed(self._target_embedding, target_in.values, names)
        of_grid = None if names is None else layout.pad(names)
        grid, _, _ = self._recur(layout.pad(x), *self.begin(memory), of_grid)
        return self._attend(layout.pack(grid), layout, memory)

    def start(self, memory: Memory) -> RecurrentState:
        return RecurrentState(self, memory)

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, RecurrentState)  # a state comes back to the model that made it
        new = tokens.shape[1]
        x = self._embed(self._target_embedding, tokens)
        grid, hidden, cell = self._recur(x, state.hidden, state.cell)  # (N, t, D)
        state.moved(hidden, cell, new)
        # Rows of one source stand together, so they are one sequence of queries.
        layout = Layout([count * new for count in state.counts], tokens.device)
        out = self._attend(grid.flatten(0, 1), layout, state.memory)
        return self.project(out.unflatten(0, (-1, new))[:, -1])

    # ---- inside

    def embedded(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        embedding = self.source_embedding if side == "source" else self._target_embedding
        return {"embedding": self._embed(embedding, tokens)}

    def begin(self, memory: Memory) -> tuple[Tensor, Tensor]:
        """The decoder's first hidden and cell vectors (L, B, D), from the mean of each memory."""
        layout = memory.layout
        lengths = torch.tensor(layout.lengths, device=memory.rows.device)[:, None]
        mean = layout.pad(memory.rows).sum(dim=1) / lengths  # (B, D)
        first = torch.tanh(self.first(mean)).to(memory.rows.dtype)
        hidden = first.unflatten(-1, (len(self.decoder), -1)).transpose(0, 1).contiguous()
        return hidden, torch.zeros_like(hidden)

    @property
    def _scale(self) -> float:
        return float(self.settings.model_dim**-0.5)

    @property
    def _target_embedding(self) -> Embedding:
        return self.source_embedding if self.target_embedding is None else self.target_embedding

    def _embed(self, embedding: Embedding, tokens: Tensor, names: Tensor | None = None) -> Tensor:
        """(...) -> (..., D), of unit variance as the embeddings of a Transformer."""
        return self.dropout.forward(embedding(tokens) * self.settings.model_dim**0.5, names)

    def _recur(
        self, x: Tensor, hidden: Tensor, cell: Tensor, names: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(N, T, D) through all layers -> the same, and hidden and cell vectors after it.

        ``names`` (N, T) of the rows, for dropout.
        """
        ends = []
        for number, layer in enumerate(self.decoder):
            begin = hidden[number : number + 1].contiguous(), cell[number : number + 1].contiguous()
            out, end = layer(x, begin)
            ends.append(end)
            out = self.dropout.forward(out, names)
            x = out + x if number else out
        return x, torch.cat([h for h, _ in ends]), torch.cat([c for _, c in ends])

    def _attend(self, rows: Tensor, layout: Layout, memory: Memory) -> Tensor:
        """(P, D) of the decoder over a memory -> (P, D), what the output layer reads."""
        keys = memory.layout.pad(memory.rows)[:, None]  # (B, 1, S, D)
        mask = masks.both(
            masks.padding(memory.layout), masks.of_keys(memory.key_mask, memory.layout)
        )
        query = layout.pad(self.query(rows).to(keys.dtype))[:, None]  # (B, 1, T, D)
        found, weights = scaled_dot_product(query, keys, keys, mask, scale=self._scale)
        probe = probes.probe()
        if probe is not None:
            probe.take_attention(CROSS, weights)
            kept = probe.head_mask(CROSS, 1, found.device)
            found = found if kept is None else found * kept
        both = torch.cat([layout.pack(found[:, 0]), rows], dim=-1)
        return self.dropout.forward(torch.tanh(self.combine(both)), layout.names)
