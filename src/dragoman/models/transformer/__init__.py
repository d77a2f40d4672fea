"""The Transformer, and the faster ways to run it: ``model.py`` is the one to read first."""

from dragoman.models.transformer.model import UNKNOWN, Sublayer, Transformer, TransformerState

__all__ = ["UNKNOWN", "Sublayer", "Transformer", "TransformerState"]
