"""Perplexity: exp of the mean of -log P, in nats, over what was predicted."""

from __future__ import annotations

import math

_LARGEST = 700.0
"""exp of more is no float."""


def perplexity(loss: float) -> float:
    """Of ``loss``, nats a token; finite, whatever a model that diverges makes of it."""
    return math.exp(min(loss, _LARGEST))
