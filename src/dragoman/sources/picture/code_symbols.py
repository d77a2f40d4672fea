"""The codes of pictures as symbols, and what pictures they are of.

A file ``codes.json`` says what the autoencoder is (``models/picture_codes.py``) that makes codes of
pictures and pictures of codes. In the run that has learned it, its weights are the run's own; a
painter keeps a copy of them, and a hash of that copy stands in its file.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.base.errors import RunError
from dragoman.base.reading import read_json
from dragoman.forms.written_form import SPECIAL, Symbols
from dragoman.sources.picture.settings import PictureSource

CODES = "codes.json"
"""The file of a run, whether it makes codes or writes them."""


class _CodeFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    format: Literal[1] = 1
    levels: list[int] = Field(min_length=1, max_length=16)
    height: int
    width: int
    channels: int
    patch: int
    model: dict[str, Any]
    weights: str = Field(max_length=64)


class CodeSymbols(Symbols):
    """One symbol for each code. Ids: 0 to 2 as in a vocabulary of text, then the codes."""

    def __init__(
        self, levels: tuple[int, ...], source: PictureSource, model: dict[str, Any], weights: str
    ) -> None:
        """``model``: the settings of the autoencoder, as plain values; ``weights``: SHA-256 of its
        weights, in hex; empty where they are the run's own."""
        self.levels, self.source = levels, source
        self.model, self.weights = model, weights

    @classmethod
    def load(cls, path: Path) -> Self:
        """Errors: ``RunError`` if the file is missing or damaged."""
        try:
            found = _CodeFile.model_validate(read_json(path))
            source = PictureSource.model_validate(
                found.model_dump(include={"height", "width", "channels", "patch"})
            )
        except ValidationError as error:
            raise RunError(f"{path} does not describe the codes of pictures") from error
        return cls(tuple(found.levels), source, found.model, found.weights)

    def with_weights(self, digest: str) -> CodeSymbols:
        """The same, of an autoencoder whose weights have that hash."""
        return CodeSymbols(self.levels, self.source, self.model, digest)

    @property
    def _json(self) -> str:
        about = self.source.model_dump(include={"height", "width", "channels", "patch"})
        told = {"format": 1, "levels": list(self.levels), **about}
        return json.dumps({**told, "model": self.model, "weights": self.weights}, indent=1)

    @property
    def count(self) -> int:
        """How many codes there are."""
        return prod(self.levels)

    @property
    def first(self) -> int:
        """The symbol of code 0."""
        return len(SPECIAL)

    @property
    def size(self) -> int:
        return self.first + self.count

    @property
    def places(self) -> int:
        """Codes of one picture."""
        return self.source.patches
