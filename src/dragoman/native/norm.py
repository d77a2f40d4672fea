"""A sub-layer's residual connection and layer norm in one pass.

    residual_norm   LayerNorm(x + Dropout(sublayer))      post-norm, the paper's (§3.1)
    layer_norm      LayerNorm(x)

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


def residual_norm(
    x: Tensor,
    sublayer: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    eps: float = 1e-5,
    drop: Drop = NO_DROP,
) -> Tensor:
    """x, sublayer (..., D) of one type -> LayerNorm(x + Dropout(sublayer)), (..., D)."""
    if not (_takes(x, sublayer, weight, bias) and x.dtype == sublayer.dtype):
        return residual_norm_plain(x, sublayer, weight, bias, eps=eps, drop=drop)
    out: Tensor = _ResidualNorm.apply(x, sublayer, weight, bias, eps, drop)  # type: ignore[no-untyped-call]
    return out


def residual_norm_plain(
    x: Tensor,
    sublayer: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    eps: float = 1e-5,
    drop: Drop = NO_DROP,
) -> Tensor:
    """The reference for ``residual_norm``, in plain torch."""
    return layer_norm_plain(x + dropout_plain(sublayer, drop), weight, bias, eps=eps)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, *, eps: float = 1e-5) -> Tensor:
    """Layer norm over the last dimension: (..., D) -> (..., D)."""
    if not _takes(x, weight, bias):
        return layer_norm_plain(x, weight, bias, eps=eps)
    out: Tensor = _ResidualNorm.apply(x, None, weight, bias, eps, NO_DROP)  # type: ignore[no-untyped-call]
    return out


def layer_norm_plain(x: Tensor, weight: Tensor, bias: Tensor, *, eps: float = 1e-5) -> Tensor:
    """The reference for ``layer_norm``, in plain torch."""
    return F.layer_norm(x, weight.shape, weight.to(x.dtype), bias.to(x.dtype), eps)


def _takes(*tensors: Tensor) -> bool:
    return is_plain(*tensors) and loader.trains()


class _ResidualNorm(torch.autograd.Function):
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
