"""A form that a model writes and never reads: symbols of its own, as those of trees and boxes."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from dragoman.base.atomic import write_text
from dragoman.base.errors import DataError
from dragoman.forms.form import Form
from dragoman.forms.passage import Passage

SPECIAL = ("<unk>", "<s>", "</s>")
"""How symbols 0 to 2 are written, as in a vocabulary of text."""


class Symbols(ABC):
    """The symbols of such a form, as they are numbered and kept in one file."""

    unknown, bos, eos = range(3)

    @property
    @abstractmethod
    def size(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def _json(self) -> str:
        """What the file holds."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of all of it."""
        return hashlib.sha256(self._json.encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write them to one file. Raises FileError if that fails."""
        write_text(path, self._json + "\n")


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
