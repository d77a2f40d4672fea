"""LSTM encoder–decoders with attention."""

from dragoman.models.recurrent.model import Recurrent

__all__ = ["Recurrent"]
