"""How encoder layers read a batch of sources (paper §3.1): the same alone or below a decoder.

Shapes: P packed rows, D width.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from dragoman.models.interface import Memory
from dragoman.models.settings import UNKNOWN, EncoderSettings, StackSettings, TransformerSettings
from dragoman.nn import masks, probes
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import embed
from dragoman.nn.layers import Around, EncoderLayer, LayerNorm, LayerParts
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import Embedding
from dragoman.nn.positions import Positions
from dragoman.nn.settings import PositionSettings


def parts_of(settings: TransformerSettings | EncoderSettings) -> LayerParts:
    """What each of its layers is made of."""
    return LayerParts(
        model_dim=settings.model_dim,
        ffn_dim=settings.ffn_dim,
        attention=settings.attention,
        activation_dropout=settings.activation_dropout,
        around=around_of(settings),
    )


def around_of(settings: TransformerSettings | StackSettings) -> Around:
    """What stands around each sub-layer."""
    return Around(norm=settings.norm, residual=settings.residual, dropout=settings.dropout)


def embed_source(
    source: Sequences, embedding: Embedding, encoding: Positions, dropout: Dropout, width: int
) -> Tensor:
    """What the first layer reads: (P, D). ``width`` is D; an open probe may switch positions
    off."""
    layout, lengths, combine = source.layout, None, encoding.settings.combine
    if encoding.settings.kind == "normalised":
        lengths = torch.tensor(layout.lengths, device=layout.device)[layout.sequence]
    probe = probes.probe()
    if probe is not None and probe.positions_off:
        encoding = Positions(PositionSettings(kind="none"), encoding.width)
    return embed(
        source.values,
        layout.positions,
        embedding,
        encoding,
        dropout,
        width=width,
        combine=combine,
        lengths=lengths,
        names=layout.names,
    )


def read(
    source: Sequences,
    embedded: Tensor,
    layers: Iterable[EncoderLayer],
    norm: LayerNorm | None,
    *,
    attend_unknown: bool,
) -> Memory:
    """Layer by layer: embedded (P, D) -> the memory of the sources. ``norm`` stands at the end of a
    pre-norm stack; an open probe may hide words."""
    layout = source.layout
    key_mask = attended(source.values, attend_unknown)
    probe = probes.probe()
    if probe is not None:
        key_mask = masks.both(key_mask, probe.source_key_mask(layout.positions))
    x = embedded
    for layer in layers:
        x = layer(x, layout, key_mask)
    return Memory(x if norm is None else norm(x), layout, key_mask, source.values)


def attended(tokens: Tensor, attend_unknown: bool) -> Tensor | None:
    """(P,) bool, which tokens may be attended to; None: all of them."""
    return None if attend_unknown else tokens != UNKNOWN
