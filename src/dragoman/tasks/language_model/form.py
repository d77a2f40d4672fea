"""The form of a missing source side: a language model reads only an end symbol before it writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.forms.form import Form
from dragoman.forms.passage import Passage, Piece


class NoSource(Form):
    """Reads any input as the end symbol alone."""

    reads = False

    def __init__(self, eos: int, longest: int = 1000) -> None:
        """``eos`` is the end symbol's number in the target vocabulary, and is used here too.
        ``longest`` limits the tokens of an output that does not end by itself."""
        self.bos = self.eos = eos
        self.size = eos + 1
        self._longest = longest

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        return [[] for _ in raws]

    @property
    def fingerprint(self) -> str:
        return ""

    def save(self, path: Path) -> None:
        """Do nothing: this form has no file."""

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        return ["" for _ in outputs]

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        return [Passage("", (Piece("", "", (self.eos,)),)) for _ in raws]

    def longest_output(self, length: int, extra: int) -> int:
        """Return ``longest``, because the input does not limit the output."""
        return self._longest

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        return ["</s>" for _ in tokens]
