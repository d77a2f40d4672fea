"""A small Transformer of random weights, sources for it, and how far two results are from each
other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.model import Transformer


def random_transformer(vocabulary: int = 50, seed: int = 0, **changes: Any) -> Transformer:
    """Biases and norms are random too."""
    torch.manual_seed(seed)
    defaults: dict[str, Any] = {
        "model_dim": 48, "ffn_dim": 70, "encoder_layers": 2, "decoder_layers": 2,
        "attention": {"num_heads": 4},
    }  # fmt: skip
    settings = TransformerSettings.model_validate(defaults | changes)
    target = vocabulary if settings.tie == "all" else vocabulary + 13
    model = Transformer(settings, vocabulary, target).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0.0, 0.2)
            elif "norm" in name:
                parameter.uniform_(0.7, 1.3)
    return model.requires_grad_(False)


def random_sources(lengths: Sequence[int], vocabulary: int = 50, seed: int = 0) -> list[Tensor]:
    """Tokens of sources of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, vocabulary, (n,), generator=generator) for n in lengths]


def distance(found: Tensor, expected: Tensor) -> float:
    """Of the difference, as a share of what was expected (Euclidean norms)."""
    return float((found - expected).norm() / expected.norm())
