"""What may follow in boxes that are being written: fives that are whole, each box with an area.

Every output has the same number of boxes, so that none is missed because the end came early: a
model is not asked whether there is another one, but how sure it is of each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dragoman.forms.box_symbols import PER_BOX, BoxSymbols
from dragoman.forms.rules import Booleans, Rules


class BoxRules(Rules):
    """Of one picture."""

    def __init__(self, symbols: BoxSymbols, most: int | None = None) -> None:
        """``most``: symbols that the model can write, five at least; None: any number."""
        self._symbols = symbols
        boxes = symbols.most if most is None else min(symbols.most, most // PER_BOX)
        assert boxes > 0, "a box has room"
        self._longest = PER_BOX * boxes

    @property
    def longest(self) -> int:
        return self._longest

    def allowed(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        symbols, length = self._symbols, tokens.shape[1]
        found = np.zeros((len(tokens), symbols.size), np.bool_)
        place, first, last = length % PER_BOX, symbols.places.start, symbols.places.stop
        if length >= self._longest:
            found[:, symbols.eos] = True
        elif place < 2:  # top, left: room for an area is left
            found[:, first : last - 1] = True
        elif place < 4:  # bottom, right: behind the edge that stands two symbols before
            edges = np.arange(symbols.size)[None]
            found = (edges > tokens[:, -2:-1]) & (edges >= first) & (edges < last)
        else:
            found[:, symbols.classes.start : symbols.classes.stop] = True
        return found
