"""The Transformer (``model.py``), and the faster ways to run one.

Names are imported when first used: one of those ways needs no torch, which the model does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.models.transformer.model import Sublayer, Transformer, TransformerState

__all__ = ["Sublayer", "Transformer", "TransformerState"]


if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds a misspelt name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from dragoman.models.transformer import model

        return getattr(model, name)
