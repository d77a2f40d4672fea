"""One raw input, cut into what a model reads at once, and put together again.

What stands between the pieces of a text (spaces, newlines, the bullets and numbers of a list) is
kept as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True)
class Piece:
    """What is translated at once."""

    text: str
    """As it stands in the text."""
    behind: str
    """What follows it there and is kept: spaces, newlines, the marker of a list's next item."""
    values: tuple[int, ...] | npt.NDArray[Any]
    """Its tokens, the end symbol included; or its rows, (T, F)."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """Its tokens, without the end symbol."""
        assert isinstance(self.values, tuple), "rows are no tokens"
        return self.values[:-1]


@dataclass(frozen=True)
class Passage:
    """One text. Its translation: ``before``, then each piece's and ``behind``."""

    before: str
    pieces: tuple[Piece, ...]
    spoken: bool = False
    """Whether it is a recording: a space stands between two texts, and silence has none."""

    @property
    def is_bare(self) -> bool:
        """Whether it is one piece with nothing around it."""
        return not self.before and len(self.pieces) == 1 and not self.pieces[0].behind

    @property
    def unread(self) -> Passage:
        """The passage without the values of its pieces: what is kept of it takes little memory."""
        return replace(self, pieces=tuple(replace(piece, values=()) for piece in self.pieces))

    def join(self, translations: Sequence[str]) -> str:
        """Put the translations of the pieces, in their order, where the pieces stood."""
        if self.spoken:
            return " ".join(filter(None, map(str.strip, translations)))
        joined = [self.before]
        for piece, translation in zip(self.pieces, translations, strict=True):
            joined += (translation, piece.behind)
        return "".join(joined)
