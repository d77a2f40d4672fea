"""Sizes and choices of a model. They need no torch, so that a recipe is read without it."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from dragoman.nn.settings import AttentionSettings, Norm, PositionSettings
from dragoman.settings import Settings


class TransformerSettings(Settings):
    """Sizes and choices of a Transformer. The defaults are the paper's base model (table 3)."""

    kind: Literal["transformer"] = "transformer"
    """Which family of models."""
    model_dim: int = 512
    """Width of embeddings and layers (d_model)."""
    ffn_dim: int = 2048
    """Width inside the feed-forward layers (d_ff)."""
    encoder_layers: int = 6
    """Layers of the encoder (N)."""
    decoder_layers: int = 6
    """Layers of the decoder (N)."""
    attention: AttentionSettings = AttentionSettings()
    """Heads and their widths."""
    dropout: float = 0.1
    """On the output of every sub-layer and on embeddings (P_drop)."""
    activation_dropout: float = 0.0
    """Inside the feed-forward layers, after the ReLU. The paper has none here."""
    norm: Norm = "post"
    """post: normalise after the residual sum (the paper); pre: before each sub-layer."""
    positions: PositionSettings = PositionSettings()
    """How positions are told."""
    tie: Literal["all", "target", "none"] = "all"
    """One matrix for source, target and output (the paper), for target and output, or none."""
    attend_unknown: bool = True
    """Whether ``<unk>`` tokens may be attended to; off, they are masked as padding is."""

    @model_validator(mode="after")
    def _agree(self) -> TransformerSettings:
        if self.attention.key_width is None and self.model_dim % self.attention.num_heads:
            raise ValueError(
                f"model_dim {self.model_dim} is no multiple of num_heads "
                f"{self.attention.num_heads}; set attention.key_width or change one of them"
            )
        if self.positions.combine == "concatenate":
            width = self.positions.width
            if width is None or not 0 < width < self.model_dim:
                raise ValueError(
                    "positions that are concatenated need positions.width between 1 and "
                    f"model_dim - 1 = {self.model_dim - 1}"
                )
            if self.tie != "none":
                raise ValueError(
                    "with positions concatenated, embeddings are narrower than the output "
                    'layer, so they cannot be tied: set tie = "none"'
                )
        return self
