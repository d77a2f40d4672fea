"""Boxes in pictures as a form: what a detector writes of the picture that it reads.

As people have them, the boxes of a picture are one line (``forms/boxes.py``). Their tokens are the
symbols of ``box_symbols.py``. Every output has the same number of boxes, so that none is missed
because the end came early: a model is not asked whether there is another one, but how sure it is of
each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dragoman.forms.box_symbols import PER_BOX, BoxSymbols
from dragoman.forms.boxes import Scene, scene_of
from dragoman.forms.form import Booleans, Rules
from dragoman.forms.pieces import SPACE
from dragoman.forms.written_form import WrittenForm


class BoxRules(Rules):
    """What may follow in the boxes of one picture that are being written: fives that are whole,
    each box with an area."""

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


class BoxForm(WrittenForm):
    """Places and labels."""

    symbols: BoxSymbols
    noun = "boxes"
    spaced = True

    def __init__(self, symbols: BoxSymbols) -> None:
        self.symbols = symbols

    @property
    def forbidden(self) -> tuple[int, ...]:
        return *super().forbidden, self.symbols.nothing

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """Errors: ``DataError`` for a line that holds no boxes."""
        return [self.symbols.encode(scene_of(raw)) for raw in raws]

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        """In a picture of the size that is read."""
        height, width = self.symbols.read
        return [
            str(Scene(width, height, tuple(self.symbols.decode(list(tokens), width, height))))
            for tokens in outputs
        ]

    def shown(self, tokens: Iterable[int]) -> list[str]:
        """Each a word of its own to whoever joins pieces."""
        return [SPACE + name for name in self.symbols.shown(tokens)]

    def longest_output(self, length: int, extra: int) -> int:
        return PER_BOX * self.symbols.most

    def rules(self, raw: str, most: int | None = None) -> Rules:
        return BoxRules(self.symbols, most)
