"""A store keeps tokens or rows of numbers on disk: written once, then memory-mapped.

A store is a folder of shards, each with some hundred thousand examples, that is read through
memory maps: for a corpus of any size, only the pages in use are in memory. Its name is a key of
everything it was made from (content, cleaning, vocabularies), so it is reused if nothing changed.
``store_writer.py`` writes it.

    KEY/store.json            description of the store
    KEY/SIDE.lengths          int32, one per example, over all shards
    KEY/sums                  tokens of each chunk, and the long examples (``chunks.py``)
    KEY/00000.SIDE.{tokens,offsets}      the numbers of a row are adjacent
    KEY/00000.SIDE.{text,text-offsets}   UTF-8, for re-encoding and for display

for each SIDE that the examples of the task have, ``source`` and ``target`` or one of them.

Windows are runs of tokens, of a context length, that a model reads at once.
A text t_1 … t_n is read as BOS t_1 … t_n and predicted as t_1 … t_n EOS, n + 1 places in all.
Window k takes the places k·C to (k + 1)·C - 1, so every token is predicted once and none is read
together with another text. The last window of a text is as short as the rest of it: batches are
packed (``nn/layout.py``), so there is no padding. A window that does not begin its text begins with
the previous token instead of BOS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import read_json
from dragoman.data.chunks import ChunkSums, CorpusRange

Tokens = npt.NDArray[np.int32]

FORMAT = 1
"""The format of a store whose sides are tokens."""
FORMAT_OF_ROWS = 2
"""The format of a store with rows."""
_FORMATS = (FORMAT, FORMAT_OF_ROWS)
SUMS = "sums"
_LOOKED_THROUGH = 1 << 24
"""This many lengths are checked when a store is opened; the others when their shard is opened."""
SIDE = "target"


class TokenStore:
    """An opened store. Examples are numbered from 0 in the order of reading."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        sizes: Mapping[str, int] | None = None,
        mend: str | None = None,
    ) -> None:
        """``sizes``: the size of each side's vocabulary, which all tokens must be below. ``mend``:
        the remedy in messages, if deleting the store does not make it again.

        Raises DataError if the folder is not a complete store.
        """
        self.folder = Path(folder)
        self._sizes = sizes or {}
        self._mend = mend or f"delete {self.folder}; they will be created again"
        try:
            content = read_json(self.folder / "store.json")
            if isinstance(content, dict) and content.get("format") not in _FORMATS:
                raise DataError(
                    f"{self.folder} has format {content.get('format')!r:.20}, but this program "
                    f"reads only {FORMAT} and {FORMAT_OF_ROWS}; {self._mend}"
                )
            about = _About.model_validate(content)
        except (RunError, ValidationError) as error:
            raise DataError(f"{self.folder} is not a store of tokens; {self._mend}") from error
        self.corpora = tuple(CorpusRange(**corpus.model_dump()) for corpus in about.corpora)
        self.notes: dict[str, Any] = about.notes
        """Notes of the program that made the store, such as the cleaning report."""
        self._length = about.examples
        self._shard_examples = about.shard_examples
        self._types: dict[str, np.dtype[Any]] = {
            side: np.dtype(name) for side, name in about.tokens.items()
        }
        self._row_widths: dict[str, int] = {str(side): width for side, width in about.rows.items()}
        self.lengths: Mapping[str, npt.NDArray[np.int32]] = {
            side: self._check_lengths(side) for side in about.tokens
        }
        """(len(self),) tokens or rows of each example, by side, without special symbols;
        memory-mapped. The keys are the sides of the examples."""
        self.sums = ChunkSums.read(self.folder / SUMS, len(about.tokens), self.corpora)
        """The checksums of the chunks of the store."""
        # A store of 10^9 pairs has 4,000 shards, so the maps of a shard are opened when first
        # needed.
        self._shard = lru_cache(maxsize=256)(self._open_shard)

    def __len__(self) -> int:
        return self._length

    def total(self, side: str) -> int:
        """Return the sum of all lengths of a side."""
        return int(self.sums.tokens.sum(axis=0)[[*self._types].index(side)])

    def tokens(self, side: str, example: int, part: slice = slice(None)) -> Tokens:
        """Return (length,) int32 tokens of one side, or a part of them, without special symbols."""
        return self._values(side, example)[part].astype(np.int32)

    def values(self, side: str, example: int) -> npt.NDArray[Any]:
        """Return ``tokens`` of one side, or its rows (length, F) in the type of the form."""
        if side in self._row_widths:
            return self._values(side, example)
        return self.tokens(side, example)

    def _values(self, side: str, example: int) -> npt.NDArray[Any]:
        shard, place = divmod(self._check_example(example), self._shard_examples)
        arrays = self._shard(shard)[side]
        return arrays.tokens[arrays.offsets[place] : arrays.offsets[place + 1]]

    def text(self, side: str, example: int) -> str:
        """Return the text of one side as it was read, with invalid bytes as lone surrogates."""
        shard, place = divmod(self._check_example(example), self._shard_examples)
        arrays = self._shard(shard)[side]
        offsets = arrays.text_offsets
        text = arrays.text[offsets[place] : offsets[place + 1]].tobytes()
        try:
            return text.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self._damage_error(f"{shard:05}.{side}.text") from error

    def _check_example(self, example: int) -> int:
        if not 0 <= example < self._length:
            raise IndexError(f"there is no example {example}, only 0 to {self._length - 1}")
        return int(example)

    def _check_lengths(self, side: str) -> npt.NDArray[np.int32]:
        lengths: npt.NDArray[np.int32] = self._map(f"{side}.lengths", np.int32)
        if len(lengths) != self._length or lengths[:_LOOKED_THROUGH].min() < 0:
            raise self._damage_error(f"{side}.lengths")
        return lengths

    def _open_shard(self, shard: int) -> dict[str, _Side]:
        sides: dict[str, _Side] = {
            side: _Side(
                tokens=self._map(f"{shard:05}.{side}.tokens", kind, self._row_widths.get(side)),
                offsets=self._map(f"{shard:05}.{side}.offsets", np.int64),
                text=self._map(f"{shard:05}.{side}.text", np.uint8),
                text_offsets=self._map(f"{shard:05}.{side}.text-offsets", np.int64),
            )
            for side, kind in self._types.items()
        }
        first = shard * self._shard_examples
        examples = slice(first, first + self._shard_examples)
        for name, side in sides.items():
            counts, size = self.lengths[name][examples], self._sizes.get(name, 1 << 31)
            # The kernels index with these values. The check takes a few milliseconds for each
            # shard.
            if not (
                _lead_through(side.offsets, len(side.tokens))
                and _lead_through(side.text_offsets, len(side.text))
                and len(side.text_offsets) == len(counts) + 1
                and np.array_equal(np.diff(side.offsets), counts)
                and (name in self._row_widths or _within(side.tokens, size))
            ):
                raise self._damage_error(f"{shard:05}.{name}.*")
        return sides

    def _map(
        self, name: str, dtype: npt.DTypeLike, row_width: int | None = None
    ) -> npt.NDArray[Any]:
        path = self.folder / name
        shape = (-1,) if row_width is None else (-1, row_width)
        try:
            if path.stat().st_size == 0:  # nothing to map: all sentences empty
                return np.empty(0, dtype).reshape(0, *shape[1:])
            # A plain array over the map: the memmap class itself makes each access slower.
            return np.asarray(np.memmap(path, dtype, mode="r")).reshape(shape)
        except (OSError, ValueError) as error:
            raise self._damage_error(name) from error

    def _damage_error(self, name: str) -> DataError:
        return DataError(f"{self.folder / name}: these stored tokens are damaged; {self._mend}")


def _lead_through(offsets: npt.NDArray[np.int64], length: int) -> bool:
    """Return True if the offsets go from 0 to ``length`` and never decrease."""
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != length:
        return False
    return not (offsets[1:] < offsets[:-1]).any()


def _within(tokens: npt.NDArray[Any], size: int) -> bool:
    """Return True if all tokens are below the size of the vocabulary."""
    return len(tokens) == 0 or bool(0 <= tokens.min() <= tokens.max() < size)


class _Corpus(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    first: int = Field(ge=0)
    last: int
    weight: float = Field(gt=0, le=10_000)
    name: str


class _About(BaseModel):
    """The content of ``store.json``, which describes a store."""

    model_config = ConfigDict(strict=True)
    format: int
    examples: int = Field(ge=1, lt=2**40)
    shard_examples: int = Field(ge=1, lt=2**40)
    tokens: dict[Literal["source", "target"], Literal["uint16", "int32", "float16", "uint8"]] = (
        Field(min_length=1)
    )
    """The type of the numbers of each side."""
    rows: dict[Literal["source", "target"], Annotated[int, Field(ge=1, le=1 << 24)]] = {}
    """The width of the rows of each side that consists of rows."""
    corpora: list[_Corpus]
    notes: dict[str, Any]

    @model_validator(mode="after")
    def _agree(self) -> _About:
        ends = [0, *(end for c in self.corpora for end in (c.first, c.last)), self.examples]
        if sorted(ends) != ends:
            raise ValueError("corpora overlap, are not in order, or have missing examples")
        if not self.rows.keys() <= self.tokens.keys():
            raise ValueError("a side has rows but no tokens")
        return self


@dataclass(frozen=True)
class _Side:
    """The memory maps of one side of a shard."""

    tokens: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]
    text: npt.NDArray[np.uint8]
    text_offsets: npt.NDArray[np.int64]


class Window(NamedTuple):
    """A window reads the places from ``begin`` to ``end`` of a text. Earlier windows have predicted
    the places before ``new``."""

    begin: int
    new: int
    end: int


def slide(places: int, context: int, stride: int) -> Iterator[Window]:
    """Yield the windows over a text of ``places`` places, each ``stride`` further than the one
    before.

    With a stride below the context, a window reads the end of the previous one again, so that every
    place but the first ones has at least ``context - stride`` others before it.
    """
    yield Window(0, 0, min(context, places))
    for new in range(context, places, stride):
        begin = new - (context - stride)
        yield Window(begin, new, min(begin + context, places))


def part_of(begin: int, length: int) -> slice:
    """Return the slice of a text's bare tokens that ``read_and_predicted`` takes for a window."""
    return slice(max(begin - 1, 0), begin + length)


def read_and_predicted(
    part: Tokens, begin: int, length: int, bos: int, eos: int
) -> tuple[Tokens, Tokens]:
    """Return the tokens that a window of ``length`` places reads, and those it predicts: (length,)
    each.

    ``part``: the tokens ``part_of(begin, length)`` of its text.
    """
    read = part if begin else np.append(np.int32(bos), part)
    predicted = read[1 : length + 1]
    if len(predicted) < length:
        predicted = np.append(predicted, np.int32(eos))
    return read[:length], predicted


class Cuts:
    """The texts of a store, cut into pieces of at most ``most`` places, numbered in their order."""

    def __init__(self, store: TokenStore, places: npt.NDArray[np.int64], most: int) -> None:
        """``places`` (texts,): the length of each text; a text of length 0 has no piece."""
        self._store, self._most = store, most
        counts = -(-places // most)
        self._first = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
        """(texts + 1,) the first piece of each text."""
        self.sizes = np.full(self._first[-1], most, np.int32)
        """(pieces,) the length of each piece."""
        last = (self._first[1:] - 1)[counts > 0]
        self.sizes[last] = (places[counts > 0] - 1) % most + 1
        self.corpora = tuple(
            CorpusRange(int(self._first[c.first]), int(self._first[c.last]), c.weight, c.name)
            for c in store.corpora
        )

    def __len__(self) -> int:
        return int(self._first[-1])

    def where(self, number: int) -> tuple[int, int, int]:
        """Return the text of a piece, the place where the piece begins, and its length."""
        text = int(np.searchsorted(self._first, number, side="right")) - 1
        begin = (number - int(self._first[text])) * self._most
        return text, begin, int(self.sizes[number])


class Windows(Cuts):
    """The windows of all texts of a store, numbered in their order, as a ``Plan`` takes them."""

    def __init__(self, store: TokenStore, context: int, bos: int, eos: int) -> None:
        super().__init__(store, store.lengths[SIDE].astype(np.int64) + 1, context)
        self._bos, self._eos = bos, eos
        self.lengths = {SIDE: self.sizes - 1}
        """(windows,) tokens of each, one fewer than it predicts, as a plan adds the end symbol."""

    def window(self, number: int) -> tuple[Tokens, Tokens]:
        """Return the tokens that a window reads, and those it predicts, each (length,)."""
        text, begin, length = self.where(number)
        part = self._store.tokens(SIDE, text, part_of(begin, length))
        return read_and_predicted(part, begin, length, self._bos, self._eos)


class TextPieces(Cuts):
    """All texts of a store in pieces that are read whole, numbered in their order, as a ``Plan``
    takes them. With its end symbol, a piece has at most ``context`` tokens."""

    def __init__(self, store: TokenStore, context: int) -> None:
        super().__init__(store, store.lengths[SIDE].astype(np.int64), context - 1)
        self.lengths = {SIDE: self.sizes}
        """(pieces,) tokens of each; a plan adds the end symbol."""

    def piece(self, number: int) -> Tokens:
        """Return the bare tokens of a piece, (length,)."""
        text, begin, length = self.where(number)
        return self._store.tokens(SIDE, text, slice(begin, begin + length))
