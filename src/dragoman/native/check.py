"""Compare the kernels that train with their plain twins on small products, once per process.

A library that was built for another processor, or by a compiler that made a mistake, is found here
and not in a translation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.native import (
    additive,
    attention,
    dropout,
    embedding,
    linear,
    loss,
    lstm,
    norm,
    orthogonal,
)
from dragoman.native.dropout import Drop
from dragoman.native.linear import PackedWeights, Precision

_TOLERANCE = {torch.float32: 2e-4, torch.bfloat16: 4e-2}
"""Largest difference allowed, relative to the largest number of the twin's result."""

_RATE, _SEED = 0.2, 7
"""The rate and the seed of dropout."""


def first_difference() -> str | None:
    """The name of the first kernel that disagrees with its twin; None if all agree."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # whatever the first to ask computes in
    try:
        # Gradients are compared too, also where the first to ask does without them.
        with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            for dtype in _TOLERANCE:
                for name, fast, plain, tensors in _products(dtype):
                    if not _agree(fast, plain, tensors, dtype):
                        return f"{name} ({str(dtype).removeprefix('torch.')})"
            precisions: tuple[Precision, ...] = ("fp32", "bf16")
            for precision in precisions:
                if not _orthogonal_agrees(precision):
                    return f"orthogonal ({precision})"
    finally:
        torch.set_default_dtype(before)
    return None


_Product = Callable[..., Tensor]


def _products(dtype: torch.dtype) -> Iterator[tuple[str, _Product, _Product, list[Tensor]]]:
    """(name, kernel, twin, inputs): inputs of ``dtype`` first, then fp32 parameters."""

    def rows(count: int, width: int) -> Tensor:
        return torch.randn(count, width).to(dtype)

    keys = torch.tensor([5, -2, 2**31 - 1, 9, 0, -(2**31), 40, 3], dtype=torch.int32)

    def drop(rows: int = 8) -> Drop:
        return Drop(_RATE, _SEED, keys[:rows])

    yield (
        "residual_norm",
        lambda x, s, w, b: norm.layer_norm(x, w, b, added=s, drop=drop(5)),
        lambda x, s, w, b: norm.layer_norm_plain(x, w, b, added=s, drop=drop(5)),
        [rows(5, 36), rows(5, 36), torch.rand(36) + 0.5, torch.randn(36)],
    )
    yield (
        "dropout",
        lambda onto, x: dropout.dropout(x, drop(5), onto=onto),
        lambda onto, x: onto + dropout.dropout_plain(x, drop(5)),
        [rows(5, 36), rows(5, 36)],
    )
    at = torch.tensor([0, 3, 8], dtype=torch.int32)
    of_attention: dict[str, Any] = {"heads": 2, "causal": True, "scale": 0.5, "drop": drop()}
    yield (
        "attention",
        lambda *qkv: attention.attention(qkv, at, at, **of_attention),
        lambda q, k, v: attention.attention_plain(q, k, v, at, at, **of_attention),
        [rows(8, 8), rows(8, 8), rows(8, 20)],
    )
    ids, places = torch.tensor([2, 0, 2]), torch.randn(3, 20)
    of_embedding: dict[str, Any] = {"scale": 3.0, "dtype": dtype, "drop": drop(3)}
    yield (
        "embedding",
        lambda m: embedding.embed(ids, m, places, ids, **of_embedding),
        lambda m: embedding.embed_plain(ids, m, places, ids, **of_embedding),
        [torch.randn(4, 20)],
    )
    yield (
        "lstm",
        lambda x, h, b, c: torch.cat(lstm.cell(x, h, b, c), dim=1),
        lambda x, h, b, c: torch.cat(lstm.cell_plain(x, h, b, c), dim=1),
        [rows(5, 80), rows(5, 80), torch.randn(80), torch.randn(5, 20)],
    )
    seen = torch.tensor([[True] * 3, [True, True, False]])
    yield (
        "additive attention",
        lambda q, k, v: additive.additive_scores(q, k, v, seen) * seen[:, None],
        lambda q, k, v: additive.additive_scores_plain(q, k, v) * seen[:, None],
        [rows(8, 20).view(2, 4, 20), rows(6, 20).view(2, 3, 20), torch.randn(20)],
    )
    precision: Precision = "fp32" if dtype == torch.float32 else "bf16"
    if not linear.is_supported(24, 70, precision):
        return
    weight, bias, back = torch.randn(70, 24) / math.sqrt(24), torch.randn(70), torch.randn(24, 70)
    yield (
        "linear",
        lambda x, w, b: linear.linear(x, [w], [b], PackedWeights([w], precision)),
        F.linear,
        [rows(7, 24), weight, bias],
    )
    yield (
        "feed_forward",
        lambda x, w, b, u, c: linear.feed_forward(
            x,
            (w, b),
            (u, c),
            (PackedWeights([w], precision), PackedWeights([u], precision)),
            drop=drop(7),
        ),
        lambda x, w, b, u, c: F.linear(
            dropout.dropout_plain(F.relu(F.linear(x, w, b)), drop(7)), u, c
        ),
        [rows(7, 24), weight, bias, back / math.sqrt(70), torch.randn(24)],
    )
    targets = torch.tensor([3, 0, 69])
    yield (
        "cross_entropy",
        lambda x, w: loss.cross_entropy(
            x, w, targets, PackedWeights([w], precision), smoothing=0.1
        )[0],
        lambda x, w: F.cross_entropy(x @ w.t(), targets, reduction="sum", label_smoothing=0.1),
        [rows(3, 24), weight],
    )


def _agree(fast: _Product, plain: _Product, tensors: list[Tensor], dtype: torch.dtype) -> bool:
    """True if results and all gradients are the same within the type's rounding."""
    ours = [t.detach().clone().requires_grad_() for t in tensors]
    # The twin works in fp32 on the same numbers: weights rounded as the kernel rounds them.
    theirs = [t.detach().to(dtype).float().clone().requires_grad_() for t in tensors]
    out, wanted = fast(*ours), plain(*theirs)
    pull = torch.randn(wanted.shape).to(dtype).float()
    # A scalar: handed a gradient, backward imports torch's symbolic machinery: half a second.
    (out.float() * pull).sum().backward()
    (wanted * pull).sum().backward()
    pairs = [(out, wanted), *((a.grad, b.grad) for a, b in zip(ours, theirs, strict=True))]
    return all(_close(a, b, _TOLERANCE[dtype]) for a, b in pairs)


def _orthogonal_agrees(precision: Precision) -> bool:
    """True if the kernel that makes matrices orthogonal is not there, or agrees with its twin."""
    ours = torch.randn(2, 20, 6)
    if not orthogonal.is_supported([ours.shape], precision):
        return True
    theirs = orthogonal.orthogonal_plain(ours, precision)
    orthogonal.orthogonalise([ours], precision)
    return _close(ours, theirs, 1e-3 if precision == "fp32" else 0.1)


def _close(ours: Tensor | None, theirs: Tensor | None, tolerance: float) -> bool:
    assert ours is not None and theirs is not None
    difference = (ours.detach().float() - theirs.detach().float()).abs().max()
    return bool(difference <= tolerance * theirs.detach().abs().max().clamp(min=1e-3))
