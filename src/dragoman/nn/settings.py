"""Settings of the layers. This module does not import torch, so that a recipe can be read without
it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dragoman.base.settings import Settings

Norm = Literal["post", "pre", "none"]

Activation = Literal["relu", "swish", "gelu"]
"""relu: max(0, x); swish: x σ(x); gelu: x Φ(x) with the exact normal distribution function Φ, as
Hugging Face and CTranslate2 use the name. (Marian's ``gelu`` is x σ(1.702 x).)"""

InferencePrecision = Literal["auto", "int8", "bf16", "fp32"]
"""The precisions that a user may choose for a trained model."""

NORM_EPSILON = 1e-5
"""The number that a layer norm adds to a variance, unless a setting says otherwise."""


class AttentionSettings(Settings):
    """Settings of multi-head attention."""

    num_heads: int = Field(8, ge=1, le=1024)
    """The number of heads (h)."""
    key_width: int | None = Field(None, ge=1, le=65_536)
    """The width of each head's queries and keys (d_k). Default: model width / heads."""
    value_width: int | None = Field(None, ge=1, le=65_536)
    """The width of each head's values (d_v). Default: ``key_width``."""
    scaled: bool = True
    """Divide attention scores by √d_k. Switch this off to see why the paper does it: the softmax
    saturates."""
    whole_input: bool = True
    """Each head projects the whole input (the paper). Off: each head projects only its slice of the
    input."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on attention weights. The paper has none here."""
    path: Literal["auto", "plain", "fused"] = "auto"
    """plain: the formula; fused: torch's kernel; auto: whichever is faster on this device."""


class LayerSettings(Settings):
    """Settings of layers of self-attention and feed-forward."""

    model_dim: int = Field(512, ge=1, le=65_536)
    """The width of embeddings and layers (d_model)."""
    ffn_dim: int = Field(2048, ge=1, le=1_000_000)
    """The inner width of the feed-forward layers (d_ff)."""
    attention: AttentionSettings = AttentionSettings()
    """Heads and their widths."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the output of every sub-layer and on embeddings (P_drop)."""
    activation: Activation = "relu"
    """The activation function of the feed-forward layers. relu: max(0, x) (as in the paper); swish:
    x times the sigmoid of x (OPUS-MT's models); gelu: x times the normal distribution function,
    exactly (GPT, BERT)."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout inside the feed-forward layers, after the activation. The paper has none here."""
    norm: Norm = "post"
    """Layer normalisation. post: after the residual sum (the paper); pre: before each sub-layer;
    none: nowhere, to show why normalisation is needed."""
    norm_epsilon: float = Field(NORM_EPSILON, gt=0, le=1)
    """The number that layer normalisation adds to the variance."""
    residual: bool = True
    """Residual connections around each sub-layer (the paper). Switch them off to see why the paper
    has them: deep stacks do not learn."""


class PositionSettings(Settings):
    """Settings of the encoding of positions."""

    kind: Literal[
        "sinusoidal", "learned", "index", "normalised", "binary", "marian", "sinusoidal-2d", "none"
    ] = "sinusoidal"
    """The encoding: sinusoidal (as in the paper), learned, index (the number of the position),
    normalised (that number divided by the length), binary (its binary digits), marian (all sines
    before all cosines, with the frequencies of Marian), sinusoidal-2d (for patches of pictures and
    models of kind encoder: one half encodes the row, the other the column), or none."""
    combine: Literal["add", "concatenate"] = "add"
    """add: add the encoding to the embedding (as in the paper); concatenate: append it to a
    narrower embedding."""
    width: int | None = Field(None, ge=1, le=65_536)
    """The width of the encoding when it is concatenated; when it is added, this is the model's
    width."""
    maximum: int = Field(1024, ge=1, le=1_000_000)
    """The number of learned positions, and the divisor of the normalised index on the target
    side."""
