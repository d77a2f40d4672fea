"""A row of a table of sizes, and what follows from it in a recipe, whatever is learned.

The tables stand in ``pairs.py``, ``texts.py``, ``labels.py``, ``trees.py``,
``tags.py``, ``files.py`` and ``spoken.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Size:
    """A model and its training for text of up to a certain amount."""

    below: float
    """The row is for less text than this, counted as its table does: in pairs, labelled texts,
    trees or characters."""
    vocabulary: int
    """Tokens at most; what a text supports is found out later (``vocabulary_size.py``)."""
    model_dim: int
    heads: int
    layers: int
    dropout: float
    tokens_per_update: int
    warmup: int
    peak: float
    epochs: int
    """How long to train if no time is given."""
    optimizer: Literal["adam", "muon"] = "adam"

    @property
    def stack(self) -> dict[str, Any]:
        """The section ``model`` of a recipe whose model is one stack, but for its kind."""
        return {**self._widths, "layers": self.layers}

    @property
    def both(self) -> dict[str, Any]:
        """The section ``model`` of one with an encoder and a decoder."""
        return {**self._widths, "encoder_layers": self.layers, "decoder_layers": self.layers}

    @property
    def _widths(self) -> dict[str, Any]:
        return {
            "model_dim": self.model_dim,
            "ffn_dim": 4 * self.model_dim,
            "dropout": self.dropout,
            "attention": {"num_heads": self.heads},
        }

    @property
    def plan(self) -> dict[str, Any]:
        """The section ``plan``."""
        return {
            "tokens_per_update": self.tokens_per_update,
            "tokens_per_micro_batch": min(4096, self.tokens_per_update),
        }

    def training(self, schedule: str = "cosine") -> dict[str, Any]:
        """The section ``training``, with that kind of schedule."""
        return {
            "updates": 10 * self.warmup,
            "clip_norm": 1.0,
            "optimizer": {"kind": self.optimizer},
            "schedule": {"kind": schedule, "warmup": self.warmup, "peak": self.peak},
        }


def row_of(table: Sequence[Size], count: float) -> Size:
    """The row of a table for ``count`` of what the table counts."""
    return next(row for row in table if count < row.below)
