"""What a plan over very many simulated examples costs: seconds, and memory of its own.

    python benchmarks/large_plan.py --examples 1000000000
    python benchmarks/large_plan.py --examples 1000000000 --without-sums

The lengths are simulated: 16 million drawn ones, over and over. Processor seconds are of this
process alone, so they hold on a busy machine too.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.data.chunks import ChunkSums, CorpusRange
from dragoman.data.plan import Plan, PlanSettings

_DRAWN = 1 << 24


class Repeated:
    """Lengths that repeat what was drawn."""

    def __init__(self, drawn: npt.NDArray[np.int32], examples: int) -> None:
        self._drawn, self._examples = drawn, examples

    def __len__(self) -> int:
        return self._examples

    def __getitem__(self, examples: Any) -> npt.NDArray[np.int32]:
        if isinstance(examples, slice):
            first, last, _ = examples.indices(self._examples)
            if first // _DRAWN == (last - 1) // _DRAWN:
                begin = first % _DRAWN
                return self._drawn[begin : begin + last - first]
            examples = np.arange(first, last)
        return self._drawn[examples % _DRAWN]


class Simulated:
    """What a plan needs of a store."""

    def __init__(self, examples: int) -> None:
        random = np.random.default_rng(1)
        # Sentences of 25 tokens on average; one in five hundred is too long.
        targets = np.minimum(random.gamma(2.0, 12.5, _DRAWN), 250).astype(np.int32)
        targets[random.random(_DRAWN) < 0.002] = 300
        sources = np.maximum(0, targets + random.integers(-5, 6, _DRAWN)).astype(np.int32)
        drawn = {"source": sources, "target": targets}
        self.lengths = {side: Repeated(lengths, examples) for side, lengths in drawn.items()}
        self.corpora = (CorpusRange(0, examples),)
        self.examples = examples

    def blocks(self) -> Iterator[npt.NDArray[np.int32]]:
        """(sides, some) of all."""
        for first in range(0, self.examples, 1 << 20):
            some = slice(first, min(first + (1 << 20), self.examples))
            yield np.stack([lengths[some] for lengths in self.lengths.values()])


def main() -> None:
    """Print what it costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100_000_000)
    parser.add_argument("--without-sums", action="store_true")
    parser.add_argument("--memory", action="store_true", help="trace it, which takes longer")
    given = parser.parse_args()
    store = Simulated(given.examples)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sums"
        if not given.without_sums:
            began = time.process_time()
            path.write_bytes(ChunkSums.of(store.corpora, store.blocks()).to_bytes())
            print(
                f"sums: {path.stat().st_size / 1e6:.0f} MB, made in "
                f"{time.process_time() - began:.1f} s of processor time"
            )
        if given.memory:
            tracemalloc.start()
        began, clock = time.process_time(), time.monotonic()
        sums = None if given.without_sums else ChunkSums.read(path, 2, store.corpora)
        plan = Plan(store, PlanSettings(tokens_per_update=25_000), 1, sums)
        updates, left_out = plan.updates_per_epoch(), plan.left_out.examples
        print(
            f"{given.examples:,} examples: plan ready in {time.process_time() - began:.2f} s of "
            f"processor time, {time.monotonic() - clock:.2f} s on the clock; {updates:,} updates "
            f"an epoch, {left_out:,} left out"
        )
        if given.memory:
            print(f"memory of its own: at most {tracemalloc.get_traced_memory()[1] / 1e6:.0f} MB")
            tracemalloc.reset_peak()
        began = time.process_time()
        batches = plan.update(updates // 2)
        print(
            f"update {updates // 2:,}: {time.process_time() - began:.2f} s, "
            f"{len(batches)} micro-batches"
        )
        if given.memory:
            print(f"with one block: at most {tracemalloc.get_traced_memory()[1] / 1e6:.0f} MB")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"the whole process: at most {peak:.0f} MB")


if __name__ == "__main__":
    main()
