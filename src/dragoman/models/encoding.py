"""Encodes a batch of sources: an embedding of tokens, or the front end that a source of rows names
(``RowsSource.front_end``), then encoder layers (paper §3.1), with or without a decoder.

``ClassToken`` puts a learned row before the rows of another front end (Dosovitskiy et al., 2021,
equation 1).

Shapes: P packed rows, D width.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman.models.front_ends import FRONT_ENDS, FrontEnd
from dragoman.models.interface import Advancing, AttentionLayer, Memory, Network
from dragoman.models.settings import (
    UNKNOWN,
    EncoderDecoderSettings,
    EncoderSettings,
    TransformerSettings,
)
from dragoman.nn import probes
from dragoman.nn.attention import both_masks
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Embedding, Positions, add_positions, embed
from dragoman.nn.layers import Around, EncoderLayer, LayerNorm, Stack, stack_of
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Linear
from dragoman.sources.shared.rows import RowsSource

SourceInput = int | RowsSource
"""The input of a network: the number of different tokens, or the settings of rows."""


class ClassToken(FrontEnd):
    """A front end that puts a learned row before the rows of another one."""

    def __init__(self, made: FrontEnd, width: int) -> None:
        super().__init__()
        self.made, self.across = made, made.across
        self.token = nn.Parameter(torch.empty(width))
        nn.init.normal_(self.token, std=width**-0.5)

    def length(self, rows: int) -> int:
        return 1 + self.made.length(rows)

    def forward(self, source: Sequences) -> Sequences:
        rows, old = self.made(source), source.layout.first_row_keys
        lengths = [1 + length for length in rows.layout.lengths]
        layout = Layout(lengths, rows.layout.device, old)
        kept = layout.positions > 0
        values = self.token.to(rows.values.dtype).expand(layout.total, -1).clone()
        return Sequences(values.index_copy(0, kept.nonzero()[:, 0], rows.values), layout)


def front_end(source: SourceInput, width: int) -> FrontEnd | None:
    """Make the front end of a network of that ``width``, with weights from torch's generator.
    Return None for a source of tokens, which gets an embedding instead."""
    if isinstance(source, int):
        return None
    name, sizes = source.front_end
    return FRONT_ENDS[name](width, **sizes)


class EncoderDecoder(Advancing):
    """A model with an encoder and a decoder. It has the embeddings of both and the output layer;
    ``settings.tie`` chooses which of these share one matrix."""

    source_embedding: Embedding
    """The token embedding; a model that reads rows has none."""

    def __init__(
        self,
        settings: EncoderDecoderSettings,
        source: SourceInput,
        target_vocabulary: int,
        width: int | None = None,
    ) -> None:
        """``width``: the width of the embeddings; None: that of the model."""
        super().__init__()
        self.settings, tie = settings, settings.tie
        width = width or settings.model_dim
        self.front_end = front_end(source, width)
        if isinstance(source, int):
            self.source_embedding = Embedding(source, width)
        self.target_embedding = None if tie == "all" else Embedding(target_vocabulary, width)
        self.output = (
            Linear(settings.model_dim, target_vocabulary, bias=False) if tie == "none" else None
        )

    @property
    def output_layer(self) -> Embedding | Linear:
        return self.written_embedding if self.output is None else self.output

    @property
    def written_embedding(self) -> Embedding:
        """The embedding of the tokens that the model writes."""
        return self.source_embedding if self.target_embedding is None else self.target_embedding


class LayeredEncoder(Network):
    """A network that encodes like a Transformer: embeddings or a front end, with positions, and
    then layers of self-attention."""

    source_embedding: Embedding
    """The token embedding; a model that reads rows has none."""
    settings: TransformerSettings | EncoderSettings
    source_positions: Positions
    dropout: Dropout
    encoder: Stack[EncoderLayer]
    encoder_norm: LayerNorm | None

    @cached_property
    def embedding_scale(self) -> float:
        """The factor of token embeddings."""
        return self.settings.embedding_scale

    def encode(self, source: Sequences) -> Memory:
        """Encode a batch of sources, layer by layer. An open probe may switch positions off, or
        hide words."""
        settings, encoding, tokens = self.settings, self.source_positions, None
        if self.front_end is None:
            tokens = source.values
        else:
            source = self.front_end(source)
        layout, lengths, key_mask = source.layout, None, None
        if encoding.settings.kind == "normalised":
            lengths = torch.tensor(layout.lengths, device=layout.device)[layout.sequence]
        row_keys = layout.row_keys if self.training else None
        probe = probes.opened.get()
        if probe is not None and probe.positions_off:
            off = encoding.settings.model_copy(update={"kind": "none"})
            encoding = Positions(off, encoding.width)
        if tokens is None:
            x = add_positions(
                source.values,
                self.dropout,
                positions=layout.positions,
                encoding=encoding,
                lengths=lengths,
                row_keys=row_keys,
            )
        else:
            x = embed(
                tokens,
                self.source_embedding,
                self.dropout,
                scale=self.embedding_scale,
                positions=layout.positions,
                encoding=encoding,
                lengths=lengths,
                row_keys=row_keys,
            )
            key_mask = None if settings.attend_unknown else tokens != UNKNOWN
        if probe is not None:
            key_mask = both_masks(key_mask, probe.source_key_mask(layout.positions))
        for layer in self.encoder:
            x = layer(x, layout, key_mask)
        x = x if self.encoder_norm is None else self.encoder_norm(x)
        return Memory(x, layout, key_mask, tokens)


class Encoder(LayeredEncoder):
    """A Transformer's encoder without a decoder (Devlin et al., 2019: BERT's shape). It makes a
    prediction for each of its rows, ``project(encode(source).rows)``.

        x = x + SelfAttention(LayerNorm(x));  x = x + FFN(LayerNorm(x))          (pre-norm)
        logits = x Wᵀ

    The task defines the prediction: the token at a masked place (W is the embedding with ``tie``),
    or one of some labels. Departures from BERT: no segments, no special first symbol, ReLU (the
    paper's) unless the setting ``activation`` says GELU, and no layer between the last one and W.

    Its weights have the names of those of a ``Transformer``'s encoder.
    """

    settings: EncoderSettings

    def __init__(
        self, settings: EncoderSettings, source_vocabulary: SourceInput, target_vocabulary: int
    ) -> None:
        """``target_vocabulary``: V, the number of tokens or labels that can be predicted for a row;
        with ``tie``, the number of tokens that are read. An encoder of rows has no embedding to
        tie: with ``tie`` it has no output layer, and needs a head over it."""
        super().__init__()
        self.settings = settings
        width = settings.model_dim
        made = front_end(source_vocabulary, width)
        self.front_end = ClassToken(made, width) if settings.class_token and made else made
        if isinstance(source_vocabulary, int):
            if settings.tie:
                assert source_vocabulary == target_vocabulary, "one matrix needs one vocabulary"
            self.source_embedding = Embedding(source_vocabulary, width)
        self.output = None if settings.tie else Linear(width, target_vocabulary, bias=False)
        across = self.front_end.across if self.front_end else 0
        skipped = int(settings.class_token)
        self.source_positions = Positions(settings.positions, width, across, skipped)
        self.dropout = Dropout(settings.dropout)
        self.encoder = stack_of(EncoderLayer, settings, "encoder", settings.layers)
        self.encoder_norm = Around(settings).last_norm()

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        attentions = [layer.attention for layer in self.encoder]
        return tuple(
            AttentionLayer("encoder", number, attention.heads, attention.scale, attention.name)
            for number, attention in enumerate(attentions)
        )

    @property
    def output_layer(self) -> Embedding | Linear:
        return self.source_embedding if self.output is None else self.output

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        """The steps of the embedding by name, as ``Network.input_terms`` describes. ``side`` is not
        used, since an encoder has one side."""
        lengths, places = torch.full_like(tokens, len(tokens)), torch.arange(len(tokens))
        word = self.source_embedding(tokens) * self.settings.embedding_scale
        place = self.source_positions(places, lengths, word.dtype)
        return {"embedding": word, "position": place, "sum": word + place}
