"""The plan decides which examples make which update, as a pure function of (seed, update).

An update is the same set of examples on any number of processes, before and after any interruption,
because no state is kept: update k is computed from the seed, k and the lengths of the examples
alone.

* **Epoch.** Each corpus is a stream of passes; epoch e takes ``weight`` passes' worth of it, from
  where epoch e - 1 stopped. With weight 1 that is every example exactly once an epoch.
* **Block.** A pass goes over the *chunks* of a corpus (runs of up to 1,024 neighbours, fewer in a
  small corpus) in a newly drawn order. An epoch is cut into blocks of about a million examples,
  each with its share of every corpus. Only one block is laid out in memory at a time; the block of
  an update follows from the sizes of the chunks alone, so any update is quickly located.
* **Update.** The examples of a block are sorted by roughly equal lengths, ties in a random order,
  and cut into micro-batches with equal numbers of target tokens (source tokens if examples have no
  target). These are shuffled and dealt out so that each update has its share of short and of long
  ones: an update mixes lengths as the corpus does, a micro-batch has near-equal ones.
* **Share.** Processes that train together share an update's micro-batches; the remainder, fewer
  than there are processes, are joined and their examples dealt out. So all processes have about
  equal work in every update, even if it is only one micro-batch.

Sizes are counted in real tokens (batches are packed, see ``nn/layout.py``), with the EOS that each
sentence gets. Random orders sort by a keyed hash (``hashing.py``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dragoman.base.errors import DataError
from dragoman.base.settings import Settings
from dragoman.base.wording import plural
from dragoman.data.chunks import ChunkSums, Lengths, chunks_of, fit, sizes_of
from dragoman.data.hashing import hashes, key_of

Indices = npt.NDArray[np.int64]


class PlanSettings(Settings):
    """The grouping of examples into updates."""

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
        """Return the settings for a model that reads and writes at most this many tokens."""
        limits = {
            "max_source": min(self.max_source, source),
            "max_target": min(self.max_target, target),
        }
        return self.model_copy(update=limits)


@dataclass(frozen=True)
class MicroBatchPlan:
    """The examples that go through the model together."""

    update: int
    examples: Indices
    """(B,) numbers of examples in the store."""


@dataclass(frozen=True)
class LeftOut:
    """Examples that are too long for training."""

    examples: int
    """The number of examples that are too long."""
    limits: Mapping[str, int]
    """The most tokens of each side, with EOS."""

    def summary(self) -> str:
        """Return how many examples are longer than which limits, in words."""
        sides = " or ".join(f"{limit} {side}" for side, limit in self.limits.items())
        return f"{plural(self.examples, 'is', 'are')} longer than {sides} tokens"


class Plan:
    """The order of training over one store. It is cheap to make and keeps one block in memory."""

    def __init__(
        self, store: Lengths, settings: PlanSettings, seed: int, sums: ChunkSums | None = None
    ) -> None:
        """``sums`` are the sums of the store's chunks; without them, all lengths are read.

        Raises DataError if every example is longer than the settings allow.
        """
        self.settings = settings
        self._limits = limits_of(store, settings)
        self._store = store
        self._seed = seed
        self._corpora = chunks_of(store, sums, self._limits, seed)
        self._examples_an_epoch = sum(chunks.weight * chunks.examples for chunks in self._corpora)
        if not any(chunks.examples for chunks in self._corpora):
            raise DataError(
                f"there is nothing to train on: of {self.left_out.examples:,} examples, "
                f"{self.left_out.summary()}; raise "
                + " and ".join(f"plan.max_{side}" for side in self._limits)
                + ", and model.positions.maximum if positions are learned"
            )
        self._blocks = max(1, round(self._examples_an_epoch / settings.block_examples))
        # the number of updates before each block, over all epochs; it grows as later updates are
        # needed
        self._updates_before = [0]
        self._laid_out: tuple[int, list[list[Indices]]] = (-1, [])

    @property
    def left_out(self) -> LeftOut:
        """The examples of the whole store that are too long for training."""
        fitting = sum(chunks.examples for chunks in self._corpora)
        return LeftOut(sum(map(len, self._store.corpora)) - fitting, self._limits)

    def updates_per_epoch(self) -> int:
        """Return the updates of the first epoch; later epochs differ by a few if there are many
        blocks."""
        self._grow_to_block(self._blocks)
        return self._updates_before[self._blocks]

    def update(self, update: int, rank: int = 0, ranks: int = 1) -> list[MicroBatchPlan]:
        """Return the micro-batches of update ``update`` (from 0) for process ``rank`` of ``ranks``.
        The list is empty if there are more processes than examples and none is left for this one.
        """
        block = self.block_of(update)
        if self._laid_out[0] != block:
            self._laid_out = (block, self._lay_out(block))
        batches = self._laid_out[1][update - self._updates_before[block]]
        return [MicroBatchPlan(update, examples) for examples in _share(batches, rank, ranks)]

    def block_of(self, update: int) -> int:
        """Return the block of an update, counted over all epochs."""
        if update < 0:
            raise IndexError(f"there is no update {update}; updates count from 0")
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
        """Return the number of updates, rounded up so that none exceeds its size, and at most one
        for each example."""
        return min(examples, -(-tokens // self.settings.tokens_per_update))

    def _lay_out(self, block: int) -> list[list[Indices]]:
        """Return the updates of a block (counted over all epochs), each a list of micro-batches."""
        examples = np.concatenate([
            chunks.examples_of(block, self._blocks) for chunks in self._corpora
        ])  # fmt: skip
        sizes = sizes_of(self._store, examples)
        fits = fit(sizes, self._limits)
        examples, sizes = examples[fits], sizes[:, fits]
        key = key_of(self._seed, 1, block)
        # A corpus may be in a block twice (weight 2), so ties are broken by place, not by example.
        ties = hashes(np.arange(len(examples)), key)
        order = np.lexsort((ties, *map(_roughly, sizes)))  # the last key counts most
        examples, sizes = examples[order], sizes[:, order]

        counted = sizes[-1]
        updates = self._updates_before[block + 1] - self._updates_before[block]
        in_update = -(-self.settings.tokens_per_update // self.settings.tokens_per_micro_batch)
        laid_out: list[list[Indices]] = [[] for _ in range(updates)]
        if not len(examples):
            return laid_out
        pieces = _cut(counted, min(len(examples), updates * in_update))
        # Dealing goes in rounds: every update gets one of the shortest, …, one of the longest
        # micro-batches.
        turns = np.arange(len(pieces))
        ranked = hashes(turns, key_of(self._seed, 2, block))
        dealt = np.lexsort((ranked, turns // max(updates, 1)))
        for turn, piece in enumerate(dealt):
            first, last = pieces[piece]
            laid_out[turn % updates].extend(
                examples[first + a : first + b] for a, b in self._divide(sizes[:, first:last])
            )
        return laid_out

    def _divide(self, sizes: Indices) -> list[tuple[int, int]]:
        """Return one micro-batch, or several if either side far exceeds the budget."""
        rows = sizes.max(axis=0)
        largest = int(sizes.sum(axis=1).max())
        budget = self.settings.tokens_per_micro_batch
        if largest <= 1.25 * budget:
            return [(0, len(rows))]
        return _cut(rows, min(len(rows), -(-int(rows.sum()) // budget)))


def limits_of(store: Lengths, settings: PlanSettings) -> dict[str, int]:
    """Return the most tokens of each side, with EOS. Single texts come in windows."""
    if list(store.lengths) == ["target"]:
        return {"target": settings.context}
    limits = {"source": settings.max_source, "target": settings.max_target}
    return {side: limits[side] for side in store.lengths}


def _share(batches: list[Indices], rank: int, ranks: int) -> list[Indices]:
    """Return whole micro-batches, the same number for each process, and a part of the rest."""
    whole = len(batches) // ranks * ranks
    share = batches[rank:whole:ranks]
    if whole < len(batches):
        # The rest is sorted by near-equal lengths, so every ranks-th example is a fair sample.
        part = np.concatenate(batches[whole:])[rank::ranks]
        share += [part] if len(part) else []
    return share


def _roughly(lengths: Indices) -> Indices:
    """Round lengths down to within an eighth: 1, 2, … 15, 16, 18, 20, … 32, 36, …"""
    _, bits = np.frexp(lengths.astype(np.float64))
    steps = 1 << np.maximum(0, bits.astype(np.int64) - 4)
    rough: Indices = lengths // steps * steps
    return rough


def _cut(tokens: Indices, count: int) -> list[tuple[int, int]]:
    """Cut a row of sentences into ``count`` runs of about equal tokens, none of them empty."""
    assert count <= len(tokens)
    middles = tokens.cumsum() - tokens / 2
    places = np.arange(count)
    # A sentence belongs where its middle falls, so runs are too long as often as too short.
    starts = np.searchsorted(middles, places * (tokens.sum() / max(count, 1)))
    starts = np.maximum.accumulate(starts - places) + places
    starts = np.minimum(starts, len(tokens) - count + places)
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(tokens)], strict=True))
