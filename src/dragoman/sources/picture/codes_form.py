"""Pictures as codes: what a painter writes. A raw example is the path of a picture, or a place in
an IDX file, as where pictures are read."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dragoman.base.atomic import replacing_file
from dragoman.forms.form import Booleans, Rules
from dragoman.forms.pieces import SPACE
from dragoman.forms.written_form import SPECIAL, WrittenForm
from dragoman.sources.picture.code_symbols import CodeSymbols
from dragoman.sources.picture.form import PicturesForm, pixels_from


class CodesRules(Rules):
    """What may follow in the codes of one picture that is being painted: any code, until there is
    one for each of its places, and then the end."""

    def __init__(self, symbols: CodeSymbols) -> None:
        self._symbols = symbols

    @property
    def longest(self) -> int:
        return self._symbols.places

    def allowed(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        symbols = self._symbols
        found = np.zeros((len(tokens), symbols.size), np.bool_)
        if tokens.shape[1] >= symbols.places:
            found[:, symbols.eos] = True
        else:
            found[:, symbols.first :] = True
        return found


WEIGHTS = "codes.safetensors"
"""Beside ``codes.json`` in a painter's run: the weights of the autoencoder."""
Bytes = npt.NDArray[np.uint8]


class Coder(Protocol):
    """An autoencoder at work."""

    @abstractmethod
    def codes(self, patches: Bytes) -> npt.NDArray[np.int64]:
        """(N, places, F) patches of N pictures -> (N, places)."""

    @abstractmethod
    def pictures(self, codes: npt.NDArray[np.int64]) -> Bytes:
        """(N, places) codes from 0 -> (N, places, F)."""


class CodesForm(WrittenForm):
    """Exactly as many codes as a picture has places."""

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
        """``opens``: the coder, when it is first needed; None while it is learned, when nothing is
        known of the codes of a picture. ``weights``: the file of its weights; ``seen``: that of
        hashes of the pictures that it has learned from, which need not be there."""
        self.symbols, self.seen = symbols, seen
        self._opens, self._weights = opens, weights
        self._pictures = PicturesForm(symbols.source)

    def save(self, path: Path) -> None:
        """With the weights of the coder, where they are not the run's own."""
        for file in (self._weights, self.seen):
            if file is not None and file.is_file():
                with replacing_file(path.with_name(file.name)) as temporary:
                    shutil.copyfile(file, temporary)
        super().save(path)

    @cached_property
    def coder(self) -> Coder:
        """Errors: ``RunError`` for weights that are missing, damaged or not those of the run."""
        assert self._opens is not None, "codes have been learned"
        return self._opens()

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """Errors: ``DataError`` for a picture that cannot be used."""
        if self._opens is None:
            return [[] for _ in raws]
        if not raws:
            return []
        patches = np.stack([self._pictures.rows(raw) for raw in raws])
        codes: list[list[int]] = (self.coder.codes(patches) + self.symbols.first).tolist()
        return codes

    def pictures(self, outputs: Sequence[Sequence[int]]) -> list[Bytes]:
        """(H, W, C) of each output. What is missing of one that was cut off is black."""
        source, places = self.symbols.source, self.symbols.places
        codes = np.zeros((len(outputs), places), np.int64)
        for row, tokens in zip(codes, outputs, strict=True):
            some = np.array(tokens[:places], np.int64) - self.symbols.first
            row[: len(some)] = some.clip(0, self.symbols.count - 1)
        patches = self.coder.pictures(codes) if len(codes) else np.zeros((0, places, 0), np.uint8)
        return [
            pixels_from(one[: len(tokens)], source.height, source.width, source.patch)
            for one, tokens in zip(patches, outputs, strict=True)
        ]

    def picture_at(self, raw: str) -> Bytes:
        """(H, W, C) a picture as it is read. Errors: ``DataError`` if it cannot be used."""
        return self._pictures.picture(self._pictures.rows(raw))

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        return [" ".join(self._name(token) for token in tokens) for tokens in outputs]

    def shown(self, tokens: Iterable[int]) -> list[str]:
        """Each a word of its own to whoever joins pieces."""
        return [SPACE + self._name(token) for token in tokens]

    def _name(self, token: int) -> str:
        first = self.symbols.first
        return SPECIAL[token] if token < first else str(token - first)

    def longest_output(self, length: int, extra: int) -> int:
        return self.symbols.places

    def rules(self, raw: str, most: int | None = None) -> Rules:
        return CodesRules(self.symbols)
