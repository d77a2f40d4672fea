"""A corpus as an endless stream of chunks: runs of examples that are read together.

The order of chunks is drawn again for each pass. A plan needs the examples and tokens of each
chunk; a store keeps these sums (``ChunkSums``), so that a plan over a billion examples reads none
of their lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError
from dragoman.data.hashing import hashes, key_of


@dataclass(frozen=True)
class CorpusRange:
    """The examples of a store that came from one corpus: ``first`` to ``last``, last excluded."""

    first: int
    last: int
    weight: float = 1.0
    name: str = ""

    def __len__(self) -> int:
        return self.last - self.first


Indices = npt.NDArray[np.int64]

LARGEST = 1024
"""A chunk has at most this many examples."""
_WANTED = 4096
"""A large corpus has at least this many chunks."""
_READ_TOGETHER = 1 << 22
_FORMAT = 1
_SHORTEST_LONG = 16


class Lengths(Protocol):
    """The part of a store that a plan needs."""

    @property
    def corpora(self) -> Sequence[CorpusRange]:
        """The range of examples and the weight of each corpus."""

    @property
    def lengths(self) -> Mapping[str, npt.NDArray[np.int32]]:
        """The tokens of each example without special symbols, by side: source, target or both."""


def chunk_size(corpus: CorpusRange) -> int:
    """Return the number of examples in each chunk but the last one."""
    return min(LARGEST, max(1, len(corpus) // _WANTED))


def number_of_chunks(corpus: CorpusRange) -> int:
    """Return the number of chunks of a corpus."""
    return -(-len(corpus) // chunk_size(corpus))


@dataclass(frozen=True)
class ChunkSums:
    """The tokens of each chunk of each corpus, and the chunks of long examples. They give, for any
    limits of a training run, the number of examples that are not too long, and their tokens."""

    tokens: Indices
    """(chunks, sides) tokens without special symbols."""
    long: npt.NDArray[np.int32]
    """(long examples, 1 + sides): the chunk and the lengths of each, in order."""
    longest: int
    """An example is long if any side has more tokens than this."""

    @classmethod
    def of(cls, corpora: Sequence[CorpusRange], blocks: Iterable[npt.NDArray[np.int32]]) -> Self:
        """Sum (sides, some) lengths of all examples in their order; ``blocks`` may be cut anywhere.

        About one example in a hundred is long.
        """
        firsts = [
            np.arange(corpus.first, corpus.last, chunk_size(corpus), dtype=np.int64)
            for corpus in corpora
        ]
        begins = np.concatenate([np.zeros(0, np.int64), *firsts])
        total = corpora[-1].last if corpora else 0
        most, longest = total // 100 + 4096, _SHORTEST_LONG
        tokens = np.zeros((len(begins), 0), np.int64)
        long = [np.zeros((0, 0), np.int32)]
        before = 0
        for block in blocks:
            if not tokens.shape[1]:
                tokens = np.zeros((len(begins), len(block)), np.int64)
                long = [np.zeros((0, 1 + len(block)), np.int32)]
            if not block.shape[1]:
                continue
            first = int(np.searchsorted(begins, before, side="right")) - 1
            last = int(np.searchsorted(begins, before + block.shape[1], side="left"))
            places = np.maximum(begins[first:last] - before, 0)
            tokens[first:last] += np.add.reduceat(block, places, axis=1, dtype=np.int64).T
            indices = np.flatnonzero(block.max(axis=0) > longest)
            chunks = np.searchsorted(begins, before + indices, side="right") - 1
            long.append(np.column_stack([chunks, block[:, indices].T]).astype(np.int32))
            while sum(map(len, long)) > most:
                longest = longest * 5 // 4
                long = [rows[rows[:, 1:].max(axis=1) > longest] for rows in long]
            before += block.shape[1]
        return cls(tokens, np.concatenate(long), longest)

    def to_bytes(self) -> bytes:
        """Return the content of a file; equal lengths give equal bytes."""
        chunks, sides = self.tokens.shape
        head = np.array([_FORMAT, sides, chunks, len(self.long), self.longest], np.int64)
        return head.tobytes() + self.tokens.tobytes() + self.long.tobytes()

    @classmethod
    def read(cls, path: Path, sides: int, corpora: Sequence[CorpusRange]) -> Self:
        """Read the file of ``to_bytes``, memory-mapped. Errors: ``DataError`` for a file that is
        missing, incomplete or of another version."""
        try:
            data = np.memmap(path, np.uint8, mode="r")
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read ({error}). Delete {path.parent}") from error
        head = data[:40].tobytes()
        version, own_sides, chunks, long, longest = (
            np.frombuffer(head, np.int64).tolist() if len(head) == 40 else [_FORMAT, 0, 0, 0, 0]
        )
        end = 40 + 8 * chunks * sides
        expected = sum(map(number_of_chunks, corpora))
        is_whole = len(data) == end + 4 * long * (1 + sides)
        if (version, own_sides, chunks) != (_FORMAT, sides, expected) or not is_whole:
            raise DataError(f"{path} is damaged. Delete {path.parent}; it will be created again")
        tokens = np.asarray(data[40:end]).view(np.int64).reshape(chunks, sides)
        return cls(tokens, np.asarray(data[end:]).view(np.int32).reshape(-1, 1 + sides), longest)

    def holds_for(self, limits: Sequence[int]) -> bool:
        """Return True if all examples above these limits, with EOS, are among the long ones."""
        return all(limit > self.longest for limit in limits)

    def too_long(self, limits: Sequence[int]) -> npt.NDArray[np.int32]:
        """Return the rows of ``long`` with a side above its limit, with the end symbol."""
        most = np.array(limits) - 1
        parts = [
            part[(part[:, 1:] > most).any(axis=1)]
            for start in range(0, len(self.long), _READ_TOGETHER)
            for part in [self.long[start : start + _READ_TOGETHER]]
        ]
        return np.concatenate([self.long[:0], *parts])


class Chunks:
    """The chunks of a corpus, pass after pass, each in its own order."""

    def __init__(self, corpus: CorpusRange, examples: Indices, tokens: Indices, key: int) -> None:
        self.weight = corpus.weight
        self.examples = int(examples.sum())
        """The number of examples that are not too long."""
        self._corpus = corpus
        self._size = chunk_size(corpus)
        self._examples = examples
        """(chunks,) the number of examples in each that are not too long."""
        self._tokens = tokens
        """(chunks,) tokens of these examples, on the side that updates are counted in."""
        self._key = key
        self._order: tuple[int, Indices] | None = None

    def size_of(self, block: int, blocks: int) -> tuple[int, int]:
        """Return the examples of a block that are not too long, and their tokens."""
        parts = list(self._parts(block, blocks))
        examples, tokens = (
            sum(int(sizes[part].sum()) for part in parts)
            for sizes in (self._examples, self._tokens)
        )
        return examples, tokens

    def examples_of(self, block: int, blocks: int) -> Indices:
        """Return the numbers of all examples of a block, including those that are too long."""
        parts = [np.empty(0, np.int64), *self._parts(block, blocks)]
        firsts = self._corpus.first + np.concatenate(parts) * self._size
        grid = firsts[:, None] + np.arange(self._size)  # (chunks,) -> (chunks, size)
        return grid[grid < self._corpus.last]

    def _parts(self, block: int, blocks: int) -> Iterator[Indices]:
        """Yield the chunks of a block (counted over all epochs), pass by pass."""
        chunks = len(self._tokens)
        place, end = (self._chunks_before(b, blocks) for b in (block, block + 1))
        while place < end:
            number, offset = divmod(place, chunks)
            taken = min(end - place, chunks - offset)
            yield self._pass(number)[offset : offset + taken]
            place += taken

    def _chunks_before(self, block: int, blocks: int) -> int:
        """Return the number of chunks before a block in the stream."""
        epoch, in_epoch = divmod(block, blocks)
        begin, end = (round(e * self.weight * len(self._tokens)) for e in (epoch, epoch + 1))
        return begin + (end - begin) * in_epoch // blocks

    def _pass(self, number: int) -> Indices:
        if self._order is None or self._order[0] != number:
            chunks = np.arange(len(self._tokens))
            self._order = (number, np.argsort(hashes(chunks, key_of(self._key, number))))
        return self._order[1]


def chunks_of(
    store: Lengths, sums: ChunkSums | None, limits: Mapping[str, int], seed: int
) -> list[Chunks]:
    """Return the chunks of each corpus. ``sums``: the sums of the store, if it has them."""
    chunks: list[Chunks] = []
    if sums is not None and not sums.holds_for([*limits.values()]):
        sums = None
    out = None if sums is None else sums.too_long([*limits.values()])
    before = 0
    for number, corpus in enumerate(store.corpora):
        count = number_of_chunks(corpus)
        if not count:
            continue
        if sums is None or out is None:
            examples, tokens = _count_by_lengths(store, limits, corpus)
        else:
            examples, tokens = _count_by_sums(sums, out, corpus, before)
        before += count
        chunks.append(Chunks(corpus, examples, tokens, key_of(seed, 0, number)))
    return chunks


def _count_by_sums(
    sums: ChunkSums, out: npt.NDArray[np.int32], corpus: CorpusRange, before: int
) -> tuple[Indices, Indices]:
    """Return the fitting examples of each chunk and their tokens, from the sums of the store."""
    count, size = number_of_chunks(corpus), chunk_size(corpus)
    examples = np.full(count, size, np.int64)
    examples[-1] = len(corpus) - (count - 1) * size
    tokens = sums.tokens[before : before + count, -1] + examples
    some = slice(*np.searchsorted(out[:, 0], [before, before + count]).tolist())
    chunks = out[some, 0] - before
    np.subtract.at(examples, chunks, 1)
    np.subtract.at(tokens, chunks, out[some, -1].astype(np.int64) + 1)
    return examples, tokens


def _count_by_lengths(
    store: Lengths, limits: Mapping[str, int], corpus: CorpusRange
) -> tuple[Indices, Indices]:
    """Return what ``_count_by_sums`` does, from the lengths of all examples."""
    size = chunk_size(corpus)
    examples: list[Indices] = []
    tokens: list[Indices] = []
    for _, sizes in spans(store, corpus.first, corpus.last, size):
        fits = fit(sizes, limits)
        firsts = np.arange(0, len(fits), size)
        examples.append(np.add.reduceat(fits.astype(np.int64), firsts))
        tokens.append(np.add.reduceat(np.where(fits, sizes[-1], 0), firsts))
    return np.concatenate(examples), np.concatenate(tokens)


def spans(
    store: Lengths, first: int, last: int, multiple: int = 1
) -> Iterator[tuple[int, Indices]]:
    """Yield sizes of some millions at a time, as (first example, ``sizes_of`` from there)."""
    step = _READ_TOGETHER // multiple * multiple
    for start in range(first, last, step):
        yield start, sizes_of(store, slice(start, min(start + step, last)))


def sizes_of(store: Lengths, examples: Indices | slice) -> Indices:
    """Return (sides, examples) lengths with EOS. Updates are counted in the last side."""
    return np.stack([lengths[examples].astype(np.int64) + 1 for lengths in store.lengths.values()])


def fit(sizes: Indices, limits: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Return (examples,) flags, True if no side is too long."""
    return np.asarray((sizes <= np.array([*limits.values()])[:, None]).all(axis=0))
