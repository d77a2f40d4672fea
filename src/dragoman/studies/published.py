"""What the paper prints about layers and models: its tables 1 and 2 (Vaswani et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedLayer:
    """A row of table 1. n: length, d: width, k: kernel."""

    kind: str
    """Of our models, whose layers these are."""
    name: str
    operations: str
    sequential: str
    path: str


LAYERS = (
    PublishedLayer("transformer", "self-attention", "O(n² · d)", "O(1)", "O(1)"),
    PublishedLayer("recurrent", "recurrent", "O(n · d²)", "O(n)", "O(n)"),
    PublishedLayer("convolutional", "convolutional", "O(k · n · d²)", "O(1)", "O(log_k n)"),
)


@dataclass(frozen=True)
class PublishedModel:
    """A row of table 2: newstest2014, and the operations of the training that led there."""

    kind: str
    """Of our models, which it is the model for."""
    name: str
    german: float
    """BLEU, English to German."""
    french: float
    """BLEU, English to French."""
    german_operations: float
    french_operations: float


MODELS = (
    PublishedModel("recurrent", "GNMT + RL (Wu et al., 2016)", 24.6, 39.92, 2.3e19, 1.4e20),
    PublishedModel("convolutional", "ConvS2S (Gehring et al., 2017)", 25.16, 40.46, 9.6e18, 1.5e20),
    PublishedModel("transformer", "Transformer, base", 27.3, 38.1, 3.3e18, 3.3e18),
    PublishedModel("transformer", "Transformer, big", 28.4, 41.8, 2.3e19, 2.3e19),
)
