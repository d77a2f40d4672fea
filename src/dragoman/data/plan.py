"""Which examples make which update: a pure function of (seed, update).

An update is the same set of examples on any number of processes, before and after any
interruption, because nothing here remembers anything: update k is worked out from the seed, k and
the lengths of the examples alone.

* **Epoch.** Each corpus is a stream of passes; epoch e takes ``weight`` passes' worth of it, from
  where epoch e - 1 stopped. With weight 1 that is every example exactly once an epoch.
* **Block.** A pass goes over the *chunks* of a corpus (runs of up to 1,024 neighbours, fewer in a
  small corpus) in an order drawn anew. An epoch is cut into blocks of about a million examples,
  each with its share of every corpus. Only one block is laid out in memory at a time; to find the
  block of an update takes the sizes of the chunks alone, so any update is found at once.
* **Update.** The examples of a block are sorted by roughly equal lengths, ties in an order drawn
  anew, and cut into micro-batches with equal numbers of target tokens (of source tokens where
  examples have no target). They are shuffled and
  dealt out so that each update has its share of short and of long ones: an update mixes lengths
  as the corpus does, a micro-batch holds near-equal ones.
* **Share.** Processes that train together deal an update's micro-batches out as they are; those
  that are left over, fewer than there are processes, are joined and their examples dealt out. All
  processes so have about equal work in every update, if that is but one micro-batch.

Sizes are counted in real tokens (batches are packed, see ``nn/layout.py``), with the EOS that
each sentence gets. Random orders sort by a keyed hash (``hashing.py``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dragoman.data.hashing import hashes, keyed
from dragoman.data.store import CorpusRange
from dragoman.errors import DataError
from dragoman.plural import plural
from dragoman.settings import Settings

Indices = npt.NDArray[np.int64]

_LARGEST_CHUNK = 1024
_CHUNKS_WANTED = 4096
_ROWS_READ_TOGETHER = 1 << 22


class PlanSettings(Settings):
    """How examples are grouped into updates."""

    tokens_per_update: int = Field(8192, ge=1, le=1_000_000_000)
    """The number of target tokens in one update of the weights, including EOS (the paper: 25,000).
    For examples without a target: source tokens."""
    tokens_per_micro_batch: int = Field(4096, ge=1, le=1_000_000_000)
    """The approximate number of tokens, of either side, that the model processes at once. Limits
    memory use."""
    max_source: int = Field(256, ge=1, le=1_000_000)
    """The maximum source length in tokens, including EOS. Longer pairs are not used for training;
    their number is reported."""
    max_target: int = Field(256, ge=1, le=1_000_000)
    """The maximum target length in tokens, including EOS. Longer pairs are not used for training;
    their number is reported."""
    context: int = Field(256, ge=2, le=1_000_000)
    """The number of tokens in a window, including the end symbol. Language models and masked models
    read a text in windows; a long text is split into several. Classifiers read at most this many
    tokens from the beginning of a text."""
    block_examples: int = Field(1_000_000, ge=1, le=1_000_000_000)
    """The number of examples that are shuffled together. Limits the memory use of the plan."""

    def within(self, source: int, target: int) -> PlanSettings:
        """The same, for a model that reads and writes so many tokens or rows at most."""
        limits = {
            "max_source": min(self.max_source, source),
            "max_target": min(self.max_target, target),
        }
        return self.model_copy(update=limits)


class Lengths(Protocol):
    """What a plan needs of a store."""

    @property
    def corpora(self) -> Sequence[CorpusRange]:
        """The examples of each corpus and its weight."""

    @property
    def lengths(self) -> Mapping[str, npt.NDArray[np.int32]]:
        """Tokens of each example, without special symbols, by side: source, target or both."""


@dataclass(frozen=True)
class MicroBatchPlan:
    """What goes through the model at once."""

    update: int
    examples: Indices
    """(B,) numbers of examples in the store."""


@dataclass(frozen=True)
class LeftOut:
    """Examples that are too long for training."""

    examples: int
    """How many."""
    limits: Mapping[str, int]
    """The tokens that each side may have, EOS counted."""
    first: tuple[int, ...]
    """The first few of them."""

    def summary(self) -> str:
        """How many are longer than what."""
        sides = " or ".join(f"{limit} {side}" for side, limit in self.limits.items())
        return f"{plural(self.examples, 'is', 'are')} longer than {sides} tokens"


class Plan:
    """The order of training over one store. Cheap to make; keeps one block in memory."""

    def __init__(self, store: Lengths, settings: PlanSettings, seed: int) -> None:
        """Raises DataError if every example is longer than the settings allow."""
        self.settings = settings
        self._limits = _limits(store, settings)
        self._store = store
        self._seed = seed
        self._corpora = [
            _Chunks.of(store, settings, corpus, seed, number)
            for number, corpus in enumerate(store.corpora)
            if len(corpus)
        ]
        self._examples_an_epoch = sum(chunks.weight * chunks.examples for chunks in self._corpora)
        if not any(chunks.examples for chunks in self._corpora):
            raise DataError(
                f"nothing to train on: of {self.left_out.examples:,}, "
                f"{self.left_out.summary()}; raise "
                + " and ".join(f"plan.max_{side}" for side in self._limits)
                + ", and model.positions if positions are learned and so few"
            )
        self._blocks = max(1, round(self._examples_an_epoch / settings.block_examples))
        # updates before each block, over all epochs; grown as later updates are asked for
        self._updates_before = [0]
        self._laid_out: tuple[int, list[list[Indices]]] | None = None

    @cached_property
    def left_out(self) -> LeftOut:
        """What is too long for training, counted once over the whole store."""
        count = 0
        first: list[int] = []
        for start, sizes in _spans(self._store, 0, len(next(iter(self._store.lengths.values())))):
            too_long = ~_fit(sizes, self._limits)
            count += int(too_long.sum())
            if len(first) < 5:
                first.extend((start + np.flatnonzero(too_long)[:5]).tolist())
        return LeftOut(count, self._limits, tuple(first[:5]))

    def updates_per_epoch(self) -> int:
        """Updates of the first epoch; later ones differ by a few when there are many blocks."""
        self._grow_to_block(self._blocks)
        return self._updates_before[self._blocks]

    def update(self, update: int, rank: int = 0, ranks: int = 1) -> list[MicroBatchPlan]:
        """The micro-batches of update ``update`` (from 0): the share of process ``rank`` of
        ``ranks``. One that has nothing to do, where there are more processes than examples, has
        none."""
        block = self._block_of(update)
        if self._laid_out is None or self._laid_out[0] != block:
            self._laid_out = (block, self._lay_out(block))
        batches = _share(self._laid_out[1][update - self._updates_before[block]], rank, ranks)
        return [MicroBatchPlan(update, examples) for examples in batches]

    def _block_of(self, update: int) -> int:
        if update < 0:
            raise IndexError(f"update {update}")
        while self._updates_before[-1] <= update:
            self._grow_to_block(len(self._updates_before))
        return bisect_right(self._updates_before, update) - 1

    def _grow_to_block(self, block: int) -> None:
        while len(self._updates_before) <= block:
            number = len(self._updates_before) - 1
            sizes = [chunks.size_of(number, self._blocks) for chunks in self._corpora]
            examples, tokens = map(sum, zip(*sizes, strict=True))
            added = self._updates_in(examples, tokens)
            self._updates_before.append(self._updates_before[-1] + added)

    def _updates_in(self, examples: int, tokens: int) -> int:
        """Rounded up, so that updates are not larger than asked; but none goes without a pair."""
        return min(examples, -(-tokens // self.settings.tokens_per_update))

    def _lay_out(self, block: int) -> list[list[Indices]]:
        """The updates of a block (counted over all epochs), each a list of micro-batches."""
        examples = np.concatenate(
            [chunks.examples_of(block, self._blocks) for chunks in self._corpora]
        )
        sizes = _sizes(self._store, examples)
        fits = _fit(sizes, self._limits)
        examples, sizes = examples[fits], sizes[:, fits]
        key = keyed(self._seed, 1, block)
        # A corpus may stand in a block twice (weight 2), so ties go by place, not by example.
        ties = hashes(np.arange(len(examples)), key)
        order = np.lexsort((ties, *map(_roughly, sizes)))  # the last key counts most
        examples, sizes = examples[order], sizes[:, order]

        counted = sizes[-1]
        updates = self._updates_in(len(examples), int(counted.sum()))
        in_update = -(-self.settings.tokens_per_update // self.settings.tokens_per_micro_batch)
        pieces = _cut(counted, min(len(examples), updates * in_update))
        # In rounds: every update gets one of the shortest, …, one of the longest micro-batches.
        turns = np.arange(len(pieces))
        dealt = np.lexsort((hashes(turns, keyed(self._seed, 2, block)), turns // max(updates, 1)))
        laid_out: list[list[Indices]] = [[] for _ in range(updates)]
        for turn, piece in enumerate(dealt):
            first, last = pieces[piece]
            laid_out[turn % updates].extend(
                examples[first + a : first + b] for a, b in self._bounded(sizes[:, first:last])
            )
        return laid_out

    def _bounded(self, sizes: Indices) -> list[tuple[int, int]]:
        """One micro-batch, or several where either side far exceeds what one should hold."""
        rows = sizes.max(axis=0)
        largest = int(sizes.sum(axis=1).max())
        budget = self.settings.tokens_per_micro_batch
        if largest <= 1.25 * budget:
            return [(0, len(rows))]
        return _cut(rows, min(len(rows), -(-int(rows.sum()) // budget)))


class _Chunks:
    """One corpus as an endless stream of chunks: pass after pass, each in an order of its own."""

    def __init__(
        self, corpus: CorpusRange, size: int, examples: Indices, tokens: Indices, key: int
    ) -> None:
        self.weight = corpus.weight
        self.examples = int(examples.sum())
        """That are not too long."""
        self._corpus = corpus
        self._size = size
        self._examples = examples
        """(chunks,) examples in each that are not too long."""
        self._tokens = tokens
        """(chunks,) tokens of these examples, of the side that updates are counted in."""
        self._key = key
        self._order: tuple[int, Indices] | None = None

    @classmethod
    def of(
        cls, store: Lengths, settings: PlanSettings, corpus: CorpusRange, seed: int, number: int
    ) -> _Chunks:
        size = min(_LARGEST_CHUNK, max(1, len(corpus) // _CHUNKS_WANTED))
        examples: list[Indices] = []
        tokens: list[Indices] = []
        limits = _limits(store, settings)
        for _, sizes in _spans(store, corpus.first, corpus.last, size):
            fits = _fit(sizes, limits)
            firsts = np.arange(0, len(fits), size)
            examples.append(np.add.reduceat(fits.astype(np.int64), firsts))
            tokens.append(np.add.reduceat(np.where(fits, sizes[-1], 0), firsts))
        key = keyed(seed, 0, number)
        return cls(corpus, size, np.concatenate(examples), np.concatenate(tokens), key)

    def size_of(self, block: int, blocks: int) -> tuple[int, int]:
        """Examples of a block that are not too long, and their tokens."""
        parts = list(self._parts(block, blocks))
        examples, tokens = (
            sum(int(sizes[part].sum()) for part in parts)
            for sizes in (self._examples, self._tokens)
        )
        return examples, tokens

    def examples_of(self, block: int, blocks: int) -> Indices:
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


def _spans(
    store: Lengths, first: int, last: int, multiple: int = 1
) -> Iterator[tuple[int, Indices]]:
    """Sizes of some millions at a time: (first example, ``_sizes`` from there)."""
    step = _ROWS_READ_TOGETHER // multiple * multiple
    for start in range(first, last, step):
        yield start, _sizes(store, slice(start, min(start + step, last)))


def _sizes(store: Lengths, examples: Indices | slice) -> Indices:
    """(sides, examples): lengths with EOS. The last side is the one that updates are counted in."""
    return np.stack([lengths[examples].astype(np.int64) + 1 for lengths in store.lengths.values()])


def _fit(sizes: Indices, limits: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """(examples,): whether no side is too long."""
    return np.asarray((sizes <= np.array([*limits.values()])[:, None]).all(axis=0))


def _limits(store: Lengths, settings: PlanSettings) -> dict[str, int]:
    """The tokens that each side may have, EOS counted. Texts that stand alone come in windows."""
    if list(store.lengths) == ["target"]:
        return {"target": settings.context}
    limits = {"source": settings.max_source, "target": settings.max_target}
    return {side: limits[side] for side in store.lengths}


def _share(batches: list[Indices], rank: int, ranks: int) -> list[Indices]:
    """Whole micro-batches as far as there is one for each process, and a part of the rest."""
    whole = len(batches) // ranks * ranks
    share = batches[rank:whole:ranks]
    if whole < len(batches):
        # By near-equal lengths as they stand: every ranks-th is as good a sample as any other.
        part = np.concatenate(batches[whole:])[rank::ranks]
        share += [part] if len(part) else []
    return share


def _roughly(lengths: Indices) -> Indices:
    """Lengths to within an eighth: 1, 2, … 15, 16, 18, 20, … 32, 36, …"""
    _, bits = np.frexp(lengths.astype(np.float64))
    steps = 1 << np.maximum(0, bits.astype(np.int64) - 4)
    rough: Indices = lengths // steps * steps
    return rough


def _cut(tokens: Indices, count: int) -> list[tuple[int, int]]:
    """Cut a row of sentences into ``count`` runs of about equal tokens, none of them empty."""
    assert count <= len(tokens)
    middles = tokens.cumsum() - tokens / 2
    places = np.arange(count)
    # A sentence goes where its middle falls, so runs are too long as often as too short.
    starts = np.searchsorted(middles, places * (tokens.sum() / max(count, 1)))
    starts = np.maximum.accumulate(starts - places) + places
    starts = np.minimum(starts, len(tokens) - count + places)
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(tokens)], strict=True))
