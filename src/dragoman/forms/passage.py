"""A passage is one raw input, cut into pieces that a model reads at once, and joined again.

The text between pieces (spaces, newlines, the bullets and numbers of a list) is kept unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True)
class Piece:
    """A part of a text that is translated at once."""

    text: str
    """The piece as it is in the text."""
    behind: str
    """The text after the piece, which is kept: spaces, newlines, the marker of the next list
    item."""
    values: tuple[int, ...] | npt.NDArray[Any]
    """The tokens with the end symbol; or the rows, (T, F)."""


@dataclass(frozen=True)
class Passage:
    """One text. Its translation is ``before``, then the translation and ``behind`` of each
    piece."""

    before: str
    pieces: tuple[Piece, ...]
    spoken: bool = False
    """True for a recording: a space separates two texts, and silence has no text."""

    @property
    def is_bare(self) -> bool:
        """True for one piece with nothing around it."""
        return not self.before and len(self.pieces) == 1 and not self.pieces[0].behind

    @property
    def unread(self) -> Passage:
        """The passage without the values of its pieces, which takes little memory."""
        return replace(self, pieces=tuple(replace(piece, values=()) for piece in self.pieces))

    def join(self, translations: Sequence[str]) -> str:
        """Return the text with translations, in their order, instead of the pieces."""
        if self.spoken:
            return " ".join(filter(None, map(str.strip, translations)))
        joined = [self.before]
        for piece, translation in zip(self.pieces, translations, strict=True):
            joined += (translation, piece.behind)
        return "".join(joined)
