"""Pictures as codes, which a painter writes. A raw example is the path of a picture, or a place
in an IDX file, as for reading pictures.

A file ``codes.json`` describes the autoencoder (``models/picture_codes.py``) that turns pictures
into codes and back. In the run that has learned it, its weights are the run's own; a painter
keeps a copy of them, with a hash of the copy in its file.
"""

from __future__ import annotations

import json
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import RunError
from dragoman.base.reading import read_json
from dragoman.forms.form import SPECIAL, Booleans, Rules, Symbols, WrittenForm
from dragoman.forms.subwords.sampling import SPACE
from dragoman.sources.picture.form import PicturesForm, PictureSource, pixels_from

CODES = "codes.json"
"""The file of a run that makes or writes codes."""


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

    first = len(SPECIAL)
    """The symbol of code 0."""

    def __init__(
        self, levels: tuple[int, ...], source: PictureSource, model: dict[str, Any], weights: str
    ) -> None:
        """``model``: the settings of the autoencoder, as plain values; ``weights``: SHA-256 of
        its weights, in hex; empty if they are the run's own."""
        self.levels, self.source = levels, source
        self.model, self.weights = model, weights
        self.count = prod(levels)
        """The number of codes."""
        self.size = self.first + self.count

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the symbols. Errors: ``RunError`` if the file is missing or damaged."""
        try:
            content = _CodeFile.model_validate(read_json(path))
            source = PictureSource.model_validate(
                content.model_dump(include={"height", "width", "channels", "patch"})
            )
        except ValidationError as error:
            raise RunError(f"{path} does not describe the codes of pictures") from error
        return cls(tuple(content.levels), source, content.model, content.weights)

    def with_weights(self, digest: str) -> CodeSymbols:
        """Return the symbols of an autoencoder whose weights have that hash."""
        return CodeSymbols(self.levels, self.source, self.model, digest)

    @property
    def _json(self) -> str:
        about = self.source.model_dump(include={"height", "width", "channels", "patch"})
        content = {"format": 1, "levels": list(self.levels), **about}
        return json.dumps({**content, "model": self.model, "weights": self.weights}, indent=1)

    @property
    def places(self) -> int:
        """The number of codes of one picture."""
        return self.source.patches


class CodesRules(Rules):
    """The rules of a picture's codes: any code until each place has one, then the end."""

    def __init__(self, symbols: CodeSymbols) -> None:
        self._symbols = symbols
        self.longest = symbols.places

    def allows(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        symbols = self._symbols
        flags = np.zeros((len(tokens), symbols.size), np.bool_)
        if tokens.shape[1] >= symbols.places:
            flags[:, symbols.eos] = True
        else:
            flags[:, symbols.first :] = True
        return flags


WEIGHTS = "codes.safetensors"
"""The weights of the autoencoder in a painter's run."""
Bytes = npt.NDArray[np.uint8]


class Coder(Protocol):
    """The interface of an autoencoder between patches and codes."""

    @abstractmethod
    def codes(self, patches: Bytes) -> npt.NDArray[np.int64]:
        """Turn (N, places, F) patches of N pictures into (N, places) codes."""

    @abstractmethod
    def pictures(self, codes: npt.NDArray[np.int64]) -> Bytes:
        """Turn (N, places) codes from 0 into (N, places, F) patches."""


class CodesForm(WrittenForm):
    """The form of codes: exactly as many as a picture has places."""

    symbols: CodeSymbols
    noun = "codes of pictures"
    spaced = True
    encoded_together = 256

    def __init__(
        self,
        symbols: CodeSymbols,
        opens: Callable[[], Coder] | None = None,
        weights: Path | None = None,
        seen: Path | None = None,
    ) -> None:
        """``opens`` makes the coder when it is first needed; None while it is learned, when
        pictures have no codes yet. ``weights``: the file of its weights; ``seen``: the file of
        hashes of its training pictures, which may be missing."""
        self.symbols, self.size, self.seen = symbols, symbols.size, seen
        self._opens, self._weights = opens, weights
        self._pictures = PicturesForm(symbols.source)

    def save(self, path: Path) -> None:
        """Save the symbols, and the weights of the coder if they are not the run's own."""
        for file in (self._weights, self.seen):
            if file is not None and file.is_file():
                with replacing_file(path.with_name(file.name)) as temporary:
                    shutil.copyfile(file, temporary)
        super().save(path)

    @cached_property
    def coder(self) -> Coder:
        """The coder. Errors: ``RunError`` for weights that are missing, damaged or not those of
        the run."""
        assert self._opens is not None, "codes have been learned"
        return self._opens()

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """Return the codes of pictures. Errors: ``DataError`` for a picture that cannot be used."""
        if self._opens is None:
            return [[] for _ in raws]
        if not raws:
            return []
        patches = np.stack([self._pictures.rows(raw) for raw in raws])
        codes: list[list[int]] = (self.coder.codes(patches) + self.symbols.first).tolist()
        return codes

    def pictures(self, outputs: Sequence[Sequence[int]]) -> list[Bytes]:
        """Return (H, W, C) of each output. Missing parts of an output are black."""
        source, places = self.symbols.source, self.symbols.places
        codes = np.zeros((len(outputs), places), np.int64)
        for row, tokens in zip(codes, outputs, strict=True):
            some = np.array(tokens[:places], np.int64) - self.symbols.first
            row[: len(some)] = some.clip(0, self.symbols.count - 1)
        patches = self.coder.pictures(codes) if len(codes) else np.zeros((0, places, 0), np.uint8)
        return [
            pixels_from(parts[: len(tokens)], source.height, source.width, source.patch)
            for parts, tokens in zip(patches, outputs, strict=True)
        ]

    def picture_at(self, raw: str) -> Bytes:
        """Return the (H, W, C) picture as it is read. Errors: ``DataError`` if it is unusable."""
        return self._pictures.picture(self._pictures.rows(raw))

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        return [" ".join(self._name(token) for token in tokens) for tokens in outputs]

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        """Return the name of each code, as a word of its own."""
        return [SPACE + self._name(token) for token in tokens]

    def _name(self, token: int) -> str:
        first = self.symbols.first
        return SPECIAL[token] if token < first else str(token - first)

    def longest_output(self, length: int, extra: int) -> int:
        return self.symbols.places

    def rules(self, raw: str, most: int | None = None) -> Rules:
        return CodesRules(self.symbols)
