"""A form that a model writes and never reads: symbols of its own, as those of trees and boxes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dragoman.errors import DataError
from dragoman.forms.form import Form
from dragoman.forms.passage import Passage


class Symbols(Protocol):
    """The symbols of such a form, as they are numbered and kept."""

    bos: int
    eos: int
    unknown: int

    @property
    @abstractmethod
    def size(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What they all depend on, in hex."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write them to one file."""


class WrittenForm(Form):
    """What its symbols tell of it."""

    symbols: Symbols
    noun: str
    """What they are, for messages: trees."""

    @property
    def size(self) -> int:
        return self.symbols.size

    @property
    def bos(self) -> int:
        return self.symbols.bos

    @property
    def eos(self) -> int:
        return self.symbols.eos

    @property
    def forbidden(self) -> tuple[int, ...]:
        return self.symbols.bos, self.symbols.unknown

    @property
    def fingerprint(self) -> str:
        return self.symbols.fingerprint

    def save(self, path: Path) -> None:
        self.symbols.save(path)

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        raise DataError(f"{self.noun} are written, not read")
