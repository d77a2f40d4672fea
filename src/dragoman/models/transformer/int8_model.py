"""A Transformer's weights as the int8 kernels compute with them, from fp32 or from a file of them.

How much room they take follows from the settings and the instruction set alone, so what one process
has packed, another can put into the same places (``inference/packed_models.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.int8_weights import Array, Named, in_order, sizes
from dragoman.native.decoder import NativeModel

SIDES = ("source", "target")


class Int8Model:
    """Packed weights of one model, which any number of searches and threads may share."""

    def __init__(self, settings: TransformerSettings, source: int, target: int) -> None:
        """Room for the weights of a model with so many source and target tokens. ``pack`` fills it,
        or a copy of the ``parts`` of such a model."""
        self.settings = settings
        self.vocabulary = target
        self.native = NativeModel(*sizes(settings, source, target))
        maximum = settings.positions.maximum if settings.positions.kind == "learned" else None
        self.learned: dict[str, Array] = {
            side: np.zeros((maximum, settings.model_dim), np.float32)
            for side in SIDES
            if maximum is not None
        }
        """Side -> its table of positions, (maximum, D), where they are learned."""

    @classmethod
    def of(cls, settings: TransformerSettings, source: int, target: int, named: Named) -> Int8Model:
        """The weights packed now; later changes of ``named`` do not show."""
        made = cls(settings, source, target)
        made.pack(named)
        return made

    def pack(self, named: Named) -> None:
        """Once, into the room of a new one. ``named``: weights of the shapes that
        ``int8_weights.shapes`` gives; not needed afterwards."""
        self.native.pack(in_order(self.settings, named))
        for side, table in self.learned.items():
            table[...] = named[f"{side}_positions.table"]

    @property
    def parts(self) -> Sequence[npt.NDArray[np.uint8]]:
        """The memory of all weights; good as long as the model."""
        return [
            *self.native.parts,
            *(one.reshape(-1).view(np.uint8) for one in self.learned.values()),
        ]
