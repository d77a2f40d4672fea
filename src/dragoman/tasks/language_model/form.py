"""The form of a side that is not there: what a language model reads before it writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.forms.form import Form
from dragoman.forms.passage import Passage, Piece


class NoSource(Form):
    """Whatever is given, the end symbol alone is read."""

    reads = False

    def __init__(self, eos: int, longest: int = 1000) -> None:
        """``eos``: the number of the end symbol on the other side, which is it here too.
        ``longest``: tokens of an output that nothing but its own end symbol ends."""
        self._eos = eos
        self._longest = longest

    @property
    def size(self) -> int:
        return self._eos + 1

    @property
    def bos(self) -> int:
        return self._eos

    @property
    def eos(self) -> int:
        return self._eos

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        return [[] for _ in raws]

    @property
    def fingerprint(self) -> str:
        return ""

    def save(self, path: Path) -> None:
        """There is nothing to keep."""

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        return ["" for _ in outputs]

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        return [Passage("", (Piece("", "", (self._eos,)),)) for _ in raws]

    def longest_output(self, length: int, extra: int) -> int:
        """Nothing that is read says how much there is to write."""
        return self._longest

    def shown(self, tokens: Iterable[int]) -> list[str]:
        return ["</s>" for _ in tokens]
