"""A corpus as an endless stream of chunks: runs of examples that are read together.

The order of chunks is drawn anew for each pass. What a plan must know of them before it begins are
the examples and tokens of each; a store keeps those sums (``ChunkSums``), so that a plan over a
billion examples reads none of their lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError
from dragoman.data.hashing import hashes, keyed


@dataclass(frozen=True)
class CorpusRange:
    """Which examples of a store came from one corpus: ``first`` to ``last``, last excluded."""

    first: int
    last: int
    weight: float = 1.0
    name: str = ""

    def __len__(self) -> int:
        return self.last - self.first


Indices = npt.NDArray[np.int64]

LARGEST = 1024
"""Examples of a chunk, at most."""
_WANTED = 4096
"""Chunks of a corpus, at least."""
_READ_TOGETHER = 1 << 22
_FORMAT = 1
_SHORTEST_LONG = 16


class Lengths(Protocol):
    """What a plan needs of a store."""

    @property
    def corpora(self) -> Sequence[CorpusRange]:
        """The examples of each corpus and its weight."""

    @property
    def lengths(self) -> Mapping[str, npt.NDArray[np.int32]]:
        """Tokens of each example, without special symbols, by side: source, target or both."""


def chunk_size(corpus: CorpusRange) -> int:
    """Examples of each chunk but the last one."""
    return min(LARGEST, max(1, len(corpus) // _WANTED))


def number_of_chunks(corpus: CorpusRange) -> int:
    """Of a corpus."""
    return -(-len(corpus) // chunk_size(corpus))


@dataclass(frozen=True)
class ChunkSums:
    """Tokens of each chunk of each corpus, and which chunks hold long examples: from both follow
    the examples that are not too long, and their tokens, whatever the limits of a training."""

    tokens: Indices
    """(chunks, sides) tokens, no special symbols counted."""
    long: npt.NDArray[np.int32]
    """(long examples, 1 + sides) chunk and lengths, in order."""
    longest: int
    """An example with more tokens on any side is among those."""

    @classmethod
    def of(cls, corpora: Sequence[CorpusRange], blocks: Iterable[npt.NDArray[np.int32]]) -> Self:
        """``blocks``: (sides, some) lengths, of all examples in their order, however they are cut.

        About one in a hundred examples is long.
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
            found = np.flatnonzero(block.max(axis=0) > longest)
            chunks = np.searchsorted(begins, before + found, side="right") - 1
            long.append(np.column_stack([chunks, block[:, found].T]).astype(np.int32))
            while sum(map(len, long)) > most:
                longest = longest * 5 // 4
                long = [one[one[:, 1:].max(axis=1) > longest] for one in long]
            before += block.shape[1]
        return cls(tokens, np.concatenate(long), longest)

    def to_bytes(self) -> bytes:
        """For a file; the same bytes for the same lengths."""
        chunks, sides = self.tokens.shape
        head = np.array([_FORMAT, sides, chunks, len(self.long), self.longest], np.int64)
        return head.tobytes() + self.tokens.tobytes() + self.long.tobytes()

    @classmethod
    def read(cls, path: Path, sides: int, corpora: Sequence[CorpusRange]) -> Self:
        """What ``to_bytes`` gave, memory-mapped. Errors: ``DataError`` for a file that is missing,
        not whole or of another version."""
        try:
            data = np.memmap(path, np.uint8, mode="r")
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read ({error}); delete the folder") from error
        head = data[:40].tobytes()
        version, found, chunks, long, longest = (
            np.frombuffer(head, np.int64).tolist() if len(head) == 40 else [_FORMAT, 0, 0, 0, 0]
        )
        end = 40 + 8 * chunks * sides
        expected = sum(map(number_of_chunks, corpora))
        is_whole = len(data) == end + 4 * long * (1 + sides)
        if (version, found, chunks) != (_FORMAT, sides, expected) or not is_whole:
            raise DataError(f"{path} is damaged; delete the folder, and it will be made again")
        tokens = np.asarray(data[40:end]).view(np.int64).reshape(chunks, sides)
        return cls(tokens, np.asarray(data[end:]).view(np.int32).reshape(-1, 1 + sides), longest)

    def holds_for(self, limits: Sequence[int]) -> bool:
        """Whether examples of more than that, end symbols counted, are all among the long ones."""
        return all(limit > self.longest for limit in limits)

    def too_long(self, limits: Sequence[int]) -> npt.NDArray[np.int32]:
        """Those of ``long`` that are longer than some limit, end symbols counted."""
        most = np.array(limits) - 1
        parts = [
            part[(part[:, 1:] > most).any(axis=1)]
            for start in range(0, len(self.long), _READ_TOGETHER)
            for part in [self.long[start : start + _READ_TOGETHER]]
        ]
        return np.concatenate([self.long[:0], *parts])


class Chunks:
    """The chunks of a corpus: pass after pass, each in an order of its own."""

    def __init__(self, corpus: CorpusRange, examples: Indices, tokens: Indices, key: int) -> None:
        self.weight = corpus.weight
        self.examples = int(examples.sum())
        """That are not too long."""
        self._corpus = corpus
        self._size = chunk_size(corpus)
        self._examples = examples
        """(chunks,) examples in each that are not too long."""
        self._tokens = tokens
        """(chunks,) tokens of these examples, of the side that updates are counted in."""
        self._key = key
        self._order: tuple[int, Indices] | None = None

    def size_of(self, block: int, blocks: int) -> tuple[int, int]:
        """Examples of a block that are not too long, and their tokens."""
        parts = list(self._parts(block, blocks))
        examples, tokens = (
            sum(int(sizes[part].sum()) for part in parts)
            for sizes in (self._examples, self._tokens)
        )
        return examples, tokens

    def examples_of(self, block: int, blocks: int) -> Indices:
        """Numbers of the examples of a block, the too long ones among them."""
        parts = [np.empty(0, np.int64), *self._parts(block, blocks)]
        firsts = self._corpus.first + np.concatenate(parts) * self._size
        grid = firsts[:, None] + np.arange(self._size)  # (chunks,) -> (chunks, size)
        return grid[grid < self._corpus.last]

    def _parts(self, block: int, blocks: int) -> Iterator[Indices]:
        """The chunks that a block (counted over all epochs) takes, pass by pass."""
        chunks = len(self._tokens)
        place, end = (self._taken(b, blocks) for b in (block, block + 1))
        while place < end:
            number, offset = divmod(place, chunks)
            taken = min(end - place, chunks - offset)
            yield self._pass(number)[offset : offset + taken]
            place += taken

    def _taken(self, block: int, blocks: int) -> int:
        """Chunks of the stream that stand before a block."""
        epoch, in_epoch = divmod(block, blocks)
        begin, end = (round(e * self.weight * len(self._tokens)) for e in (epoch, epoch + 1))
        return begin + (end - begin) * in_epoch // blocks

    def _pass(self, number: int) -> Indices:
        if self._order is None or self._order[0] != number:
            chunks = np.arange(len(self._tokens))
            self._order = (number, np.argsort(hashes(chunks, keyed(self._key, number))))
        return self._order[1]


def chunks_of(
    store: Lengths, sums: ChunkSums | None, limits: Mapping[str, int], seed: int
) -> list[Chunks]:
    """The chunks of each corpus. ``sums``: what the store keeps of them."""
    found: list[Chunks] = []
    if sums is not None and not sums.holds_for([*limits.values()]):
        sums = None
    out = None if sums is None else sums.too_long([*limits.values()])
    before = 0
    for number, corpus in enumerate(store.corpora):
        count = number_of_chunks(corpus)
        if not count:
            continue
        if sums is None or out is None:
            examples, tokens = _counted(store, limits, corpus)
        else:
            examples, tokens = _known(sums, out, corpus, before)
        before += count
        found.append(Chunks(corpus, examples, tokens, keyed(seed, 0, number)))
    return found


def _known(
    sums: ChunkSums, out: npt.NDArray[np.int32], corpus: CorpusRange, before: int
) -> tuple[Indices, Indices]:
    """Examples of each chunk that are not too long, and their tokens, from what the store keeps."""
    count, size = number_of_chunks(corpus), chunk_size(corpus)
    examples = np.full(count, size, np.int64)
    examples[-1] = len(corpus) - (count - 1) * size
    tokens = sums.tokens[before : before + count, -1] + examples
    some = slice(*np.searchsorted(out[:, 0], [before, before + count]).tolist())
    chunks = out[some, 0] - before
    np.subtract.at(examples, chunks, 1)
    np.subtract.at(tokens, chunks, out[some, -1].astype(np.int64) + 1)
    return examples, tokens


def _counted(
    store: Lengths, limits: Mapping[str, int], corpus: CorpusRange
) -> tuple[Indices, Indices]:
    """The same, from the lengths of all examples."""
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
    """Sizes of some millions at a time: (first example, ``sizes_of`` from there)."""
    step = _READ_TOGETHER // multiple * multiple
    for start in range(first, last, step):
        yield start, sizes_of(store, slice(start, min(start + step, last)))


def sizes_of(store: Lengths, examples: Indices | slice) -> Indices:
    """(sides, examples): lengths with EOS. The last side is the one that updates are counted in."""
    return np.stack([lengths[examples].astype(np.int64) + 1 for lengths in store.lengths.values()])


def fit(sizes: Indices, limits: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """(examples,): whether no side is too long."""
    return np.asarray((sizes <= np.array([*limits.values()])[:, None]).all(axis=0))


def first_too_long(
    store: Lengths, out: npt.NDArray[np.int32], limits: Mapping[str, int], most: int
) -> list[int]:
    """The first ``most`` of the examples that are too long; ``out``: as ``too_long`` gives it."""
    wanted = set(out[:most, 0].tolist())
    before, found = 0, list[int]()
    for corpus in store.corpora:
        size = chunk_size(corpus)
        for chunk in sorted(wanted):
            if before <= chunk < before + number_of_chunks(corpus):
                first = corpus.first + (chunk - before) * size
                sizes = sizes_of(store, slice(first, min(first + size, corpus.last)))
                found += (first + np.flatnonzero(~fit(sizes, limits))).tolist()
        before += number_of_chunks(corpus)
    return found[:most]
