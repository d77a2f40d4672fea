"""The input of a stack's first layer: an embedding and its position (paper §3.4, §3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dragoman.native.dropout import new_drop
from dragoman.native.embedding import embed as embed_natively
from dragoman.nn import probes
from dragoman.nn.dropout import Dropout
from dragoman.nn.linear import Embedding
from dragoman.nn.positions import Positions


def embed(
    tokens: Tensor,
    positions: Tensor,
    embedding: Embedding,
    encoding: Positions,
    dropout: Dropout,
    *,
    scale: float,
    lengths: Tensor | None = None,
    row_keys: Tensor | None = None,
) -> Tensor:
    """Embedding times ``scale``, plus (or beside) its position, then dropout: (P,), (P,) -> (P, D).

    ``lengths`` (P,) of the sequences that the rows are of, where positions go by them; ``row_keys``
    (P,) of the rows, for dropout.
    """
    added = encoding.settings.combine == "add"
    if embedding.packed is not None and added and encoding.is_fixed_table:
        longest = int(positions.max()) + 1 if len(positions) else 0
        return embed_natively(
            tokens,
            embedding.weight,
            encoding.rows(longest, positions.device, torch.float32),
            positions,
            scale=scale,
            dtype=embedding.packed.dtype,
            drop=new_drop(dropout.rate_now, row_keys),
        )
    x = embedding(tokens) * scale
    x = _with_place(x, positions, encoding, lengths)
    return _seen(dropout.forward(x.to(embedding.dtype), row_keys))


def placed(
    rows: Tensor,
    positions: Tensor,
    encoding: Positions,
    dropout: Dropout,
    *,
    lengths: Tensor | None = None,
    row_keys: Tensor | None = None,
) -> Tensor:
    """Adds (or appends) positions to rows (P, D) of a front end, then applies dropout; the other
    arguments are those of ``embed``."""
    return _seen(dropout.forward(_with_place(rows, positions, encoding, lengths), row_keys))


def embed_alone(
    tokens: Tensor, embedding: Embedding, dropout: Dropout, row_keys: Tensor | None = None
) -> Tensor:
    """Embedding times √width, then dropout, where positions are told by the order of reading: (P,)
    -> (P, D), of unit variance as in ``embed``. ``row_keys`` (P,) of the rows, for dropout."""
    scale = math.sqrt(embedding.weight.shape[1])
    if embedding.packed is None:
        x = embedding(tokens) * scale
        return _seen(dropout.forward(x.to(embedding.dtype), row_keys))
    return embed_natively(
        tokens,
        embedding.weight,
        None,
        None,
        scale=scale,
        dtype=embedding.packed.dtype,
        drop=new_drop(dropout.rate_now, row_keys),
    )


def _with_place(
    x: Tensor, positions: Tensor, encoding: Positions, lengths: Tensor | None
) -> Tensor:
    place = encoding(positions, lengths, x.dtype)
    return x + place if encoding.settings.combine == "add" else torch.cat([x, place], dim=-1)


def _seen(rows: Tensor) -> Tensor:
    """Shows the rows to an open probe, which may change them. Kernels do not come here."""
    probe = probes.probe()
    return rows if probe is None else probe.take_embedded(rows)
