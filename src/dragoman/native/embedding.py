"""Embeddings on their way in: Dropout(scale · E[id] + place) in one pass (paper §3.4, §3.5).

P rows, D width, V vocabulary, L places.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.native import loader
from dragoman.native.dropout import NO_DROP, Drop, dropout_plain
from dragoman.native.pointers import SUFFIXES, address, is_plain, sink


def embed(
    ids: Tensor,
    matrix: Tensor,
    places: Tensor | None,
    positions: Tensor | None,
    *,
    scale: float,
    dtype: torch.dtype,
    drop: Drop = NO_DROP,
) -> Tensor:
    """ids (P,) int64, matrix (V, D) fp32 -> rows (P, D) of ``dtype``.

    ``places`` (L, D) fp32 holds an encoding per position and is not trained; ``positions`` (P,)
    int64 says which one each row gets. None: nothing is added.
    """
    if not (is_plain(matrix, places) and dtype in SUFFIXES and loader.trains()):
        return embed_plain(ids, matrix, places, positions, scale=scale, dtype=dtype, drop=drop)
    out: Tensor = _Embed.apply(ids, matrix, places, positions, scale, dtype, drop)  # type: ignore[no-untyped-call]
    return out


def embed_plain(
    ids: Tensor,
    matrix: Tensor,
    places: Tensor | None,
    positions: Tensor | None,
    *,
    scale: float,
    dtype: torch.dtype,
    drop: Drop = NO_DROP,
) -> Tensor:
    """The reference for ``embed``, in plain torch."""
    rows = F.embedding(ids, matrix) * scale
    if places is not None and positions is not None:
        rows = rows + places[positions]
    return dropout_plain(rows, drop).to(dtype)


class _Embed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        ids: Tensor,
        matrix: Tensor,
        places: Tensor | None,
        positions: Tensor | None,
        scale: float,
        dtype: torch.dtype,
        drop: Drop,
    ) -> Tensor:
        ids, width = ids.contiguous(), matrix.shape[1]
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(matrix):
            raise IndexError(f"a token is outside the vocabulary of {len(matrix)}")
        if places is not None:
            assert positions is not None and places.is_contiguous()
            positions = positions.contiguous()
        out = torch.empty((len(ids), width), dtype=dtype)
        kernel = loader.kernel(f"embedding_forward_{SUFFIXES[dtype]}")
        tensors = (matrix.detach().contiguous(), ids, places, positions, out)
        kernel(*map(address, tensors), len(ids), width, scale, *drop.for_kernel(len(ids)))
        ctx.save_for_backward(ids)
        ctx.matrix, ctx.dtype, ctx.scale, ctx.drop = matrix, dtype, scale, drop
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        (ids,) = ctx.saved_tensors
        grad = grads[0].to(ctx.dtype).contiguous()
        vocabulary, width = ctx.matrix.shape
        place = sink(ctx.matrix)
        to = torch.zeros((vocabulary, width)) if place is None else place
        kernel = loader.kernel(f"embedding_backward_{SUFFIXES[ctx.dtype]}")
        sizes = (vocabulary, len(ids), width)
        drop = ctx.drop.for_kernel(len(ids))
        kernel(*map(address, (grad, ids, to)), *sizes, ctx.scale, *drop)
        result = to if place is None else None
        return (None, result, *[None] * 5)
