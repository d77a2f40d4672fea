"""Boxes in pictures as a form: what a detector writes of the picture that it reads.

The boxes of a picture are one line as people have them (``boxes.py``). Their tokens are
the symbols of ``box_symbols.py``, and ``box_rules.py`` is what they obey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.boxes import Scene, scene_of
from dragoman.forms.box_rules import BoxRules
from dragoman.forms.box_symbols import PER_BOX, BoxSymbols
from dragoman.forms.pieces import SPACE
from dragoman.forms.rules import Rules
from dragoman.forms.written_form import WrittenForm


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
