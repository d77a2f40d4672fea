"""Choices within the layers. They need no torch, so that a recipe is read without it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dragoman.settings import Settings

Norm = Literal["post", "pre", "none"]

NORM_EPSILON = 1e-5
"""What a layer norm adds to a variance."""


class AttentionSettings(Settings):
    """What one multi-head attention is made of."""

    num_heads: int = Field(8, ge=1, le=1024)
    """Heads (h)."""
    key_width: int | None = Field(None, ge=1, le=65_536)
    """Width of a head's queries and keys (d_k); model width / heads if not given."""
    value_width: int | None = Field(None, ge=1, le=65_536)
    """Width of a head's values (d_v); as ``key_width`` if not given."""
    scaled: bool = True
    """Divide scores by √d_k. Off shows why the paper does it: softmax saturates."""
    whole_input: bool = True
    """Each head projects the whole input (the paper); off: only its own slice of it."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on attention weights. The paper has none here."""
    path: Literal["auto", "plain", "fused"] = "auto"
    """plain (the formula), fused (torch's kernel), or auto: whichever is faster on this device."""


class PositionSettings(Settings):
    """How positions are told."""

    kind: Literal["sinusoidal", "learned", "index", "normalised", "binary", "none"] = "sinusoidal"
    """sinusoidal (the paper), learned, index, normalised, binary, or none."""
    combine: Literal["add", "concatenate"] = "add"
    """Added to the embedding (the paper), or concatenated with a narrower one."""
    width: int | None = Field(None, ge=1, le=65_536)
    """Dimensions given to positions when concatenated; when added it is the model's width."""
    maximum: int = Field(1024, ge=1, le=1_000_000)
    """Rows of a learned table, and what the target side's normalised index divides by."""
