"""Layer norm, in one pass with a sub-layer's residual connection: LayerNorm(x + Dropout(sublayer)),
the post-norm of the paper (§3.1).

Gain and bias are fp32, rows fp32 or bf16; sums are fp32. P rows, D width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.native import loader
from dragoman.native.dropout import NO_DROP, Drop, dropout_plain
from dragoman.native.pointers import SUFFIXES, address, as_rows, is_plain


def layer_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    added: Tensor | None = None,
    eps: float = 1e-5,
    drop: Drop = NO_DROP,
) -> Tensor:
    """LayerNorm(x) or LayerNorm(x + Dropout(added)) over the last dimension: (..., D) of one type
    -> (..., D)."""
    same = added is None or added.dtype == x.dtype
    if not (same and is_plain(x, added, weight, bias) and loader.trains()):
        return layer_norm_plain(x, weight, bias, added=added, eps=eps, drop=drop)
    out: Tensor = _LayerNorm.apply(x, added, weight, bias, eps, drop)  # type: ignore[no-untyped-call]
    return out


def layer_norm_plain(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    added: Tensor | None = None,
    eps: float = 1e-5,
    drop: Drop = NO_DROP,
) -> Tensor:
    """The reference for ``layer_norm``, in plain torch."""
    x = x if added is None else x + dropout_plain(added, drop)
    return F.layer_norm(x, weight.shape, weight.to(x.dtype), bias.to(x.dtype), eps)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        sublayer: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        drop: Drop,
    ) -> Tensor:
        rows = as_rows(x.detach()).contiguous()
        added = None if sublayer is None else as_rows(sublayer.detach()).contiguous()
        weight = weight.detach().float()
        keep = any(ctx.needs_input_grad)
        out = torch.empty_like(rows)
        normal = torch.empty_like(rows) if keep else None
        scale = torch.empty(rows.shape[0]) if keep else None
        kernel = loader.kernel(f"norm_forward_{SUFFIXES[x.dtype]}")
        tensors = (rows, added, weight, bias.detach().float(), out, normal, scale)
        kernel(*map(address, tensors), *rows.shape, eps, *drop.for_kernel(len(rows)))
        if normal is not None and scale is not None:
            ctx.save_for_backward(normal, scale, weight)
        ctx.drop, ctx.has_sublayer = drop, sublayer is not None
        return out.view(x.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        normal, scale, weight = ctx.saved_tensors
        grad = as_rows(grads[0].to(normal.dtype)).contiguous()
        rows, width = normal.shape
        dropped = ctx.has_sublayer and ctx.drop.rate > 0.0
        dx = torch.empty_like(normal)
        dsublayer = torch.empty_like(normal) if dropped else None
        dgain, dbias = torch.empty(width), torch.empty(width)
        kernel = loader.kernel(f"norm_backward_{SUFFIXES[normal.dtype]}")
        sums = torch.empty(loader.kernel("norm_sums")(rows, width))
        tensors = (grad, normal, scale, weight, dx, dsublayer, dgain, dbias)
        drop = ctx.drop.for_kernel(rows)
        kernel(*map(address, tensors), rows, width, *drop, address(sums))
        dx = dx.view(grads[0].shape)
        other = dx if dsublayer is None else dsublayer.view(grads[0].shape)
        return dx, other if ctx.has_sublayer else None, dgain, dbias, None, None
