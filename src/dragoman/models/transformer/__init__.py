"""The Transformer, and the faster ways to run it: ``model.py`` is the one to read first."""

from dragoman.models.transformer.model import UNKNOWN, Transformer, TransformerState

__all__ = ["UNKNOWN", "Transformer", "TransformerState"]
