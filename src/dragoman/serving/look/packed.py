"""Many numbers in one message: weights as 16-bit floats, small maps as bytes, and how many."""

from __future__ import annotations

import base64

from torch import Tensor
from torch.nn import functional as F

from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.schema import Maps, Weights

MAX_WEIGHTS = 4_000_000
"""Attention weights in one answer: 11 MB of base64."""


def check_size(weights: int) -> None:
    """Raises Refusal for more weights than one answer may hold."""
    if weights > MAX_WEIGHTS:
        raise Refusal(
            "too_many_weights",
            f"These are {weights:,} weights; one answer holds {MAX_WEIGHTS:,}. Ask "
            "/v1/look for maps, and /v1/look/attention for single layers and heads.",
            weights=weights,
            most=MAX_WEIGHTS,
        )


def weights_message(weights: Tensor) -> Weights:
    """(L, H, T, S) as a message. Raises Refusal for more than one answer may hold."""
    check_size(weights.numel())
    count, heads, looking, looked_at = weights.shape
    data = base64.b64encode(weights.half().contiguous().numpy().astype("<f2").tobytes()).decode()
    return Weights(shape=(count, heads, looking, looked_at), data=data)


def small_maps(weights: Tensor, most: int) -> Maps:
    """(L, H, T, S) with at most ``most`` rows and columns, the greatest weight of each block."""
    _, _, looking, looked_at = weights.shape
    size = min(looking, most), min(looked_at, most)
    one_by_one = weights.float().flatten(0, 1)[:, None]  # (LH, 1, T, S), where LH may be none
    small = F.adaptive_max_pool2d(one_by_one, size)
    data = (small * 255).round().clamp(0, 255).byte().numpy().tobytes()
    layers, heads = weights.shape[:2]
    return Maps(shape=(layers, heads, *size), data=base64.b64encode(data).decode())
