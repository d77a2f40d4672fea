"""Cross-entropy with label smoothing (paper §5.4) and its gradients, without stored logits.

With smoothing ε the target distribution is 1 - ε on the right token plus ε / V on every token, as
torch has it. Losses are summed over tokens, in nats. Gradients are made in the forward pass, while
a block's logits are at hand: the output layer is computed once.

P rows, D width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dragoman.native.linear import PackedWeights
from dragoman.native.pointers import address, as_rows


def cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    packed: PackedWeights,
    *,
    smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """hidden (P, D), weight (V, D) fp32, targets (P,) int64 -> sums of loss and of nll, fp64.

    The first is the smoothed loss and can be differentiated; the second is the plain one.
    ``packed`` holds ``weight``, and its precision is that of the products.
    """
    wants = torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad)
    out: tuple[Tensor, Tensor] = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, targets, packed, smoothing, wants
    )
    return out


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        packed: PackedWeights,
        smoothing: float,
        wants: bool,
    ) -> tuple[Tensor, Tensor]:
        rows = as_rows(hidden.detach().to(packed.dtype))
        targets = targets.contiguous()
        count, vocabulary = len(rows), packed.outputs
        if count and not 0 <= int(targets.min()) <= int(targets.max()) < vocabulary:
            raise IndexError(f"a target is outside the vocabulary of {vocabulary}")
        losses, nlls = torch.empty(count), torch.empty(count)
        dhidden = slopes = dweight = None
        if wants:
            size = packed.kernel(f"cross_entropy_slopes_{packed.precision}")
            slopes = torch.empty(size(count, vocabulary), dtype=packed.dtype)
            dhidden = torch.empty((count, packed.inputs), dtype=packed.dtype)
            # An empty batch leaves nothing written.
            make = torch.empty if count else torch.zeros
            dweight = make((vocabulary, packed.inputs)) if ctx.needs_input_grad[1] else None
        kernel = packed.kernel(f"cross_entropy_{packed.precision}")
        kernel(
            address(rows),
            rows.stride(0),
            address(packed.forward_words()),
            address(packed.backward_words()),
            address(targets),
            count,
            vocabulary,
            packed.inputs,
            smoothing,
            *map(address, (losses, nlls, dhidden, slopes, dweight)),
        )
        ctx.gradients = (dhidden, dweight)
        ctx.dtype = hidden.dtype
        nll = nlls.sum(dtype=torch.float64)
        ctx.mark_non_differentiable(nll)
        return losses.sum(dtype=torch.float64), nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        dhidden, dweight = ctx.gradients
        scale = float(grads[0])
        if scale != 1.0:
            dhidden = dhidden * scale
            dweight = None if dweight is None else dweight * scale
        return dhidden.to(ctx.dtype), dweight, None, None, None, None
