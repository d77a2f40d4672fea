"""How near each kernel of an update comes to the limit of this machine.

    python benchmarks/limits.py             about a minute; best on a quiet machine
    python benchmarks/tables.py             writes the table into README.md

Every call of a kernel is timed while a Transformer trains, and its operations and bytes are
reckoned from its arguments. Its limit is the longer of two times: that of its operations at the
peak of the processor (``peak.py``), and that of its bytes at the rate at which arrays of a few
megabytes are copied. Weights and sums of a product count once. Results go to
``benchmarks/results/limits.json``.
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from peak import registers_rate, tiles_rate
from provenance import Watch, machine
from results import Results

from dragoman.engine.machine import cores
from dragoman.engine.ways import SHAPES, WayShape, batches_of
from dragoman.models.transformer.model import Transformer
from dragoman.native import abi, loader
from dragoman.native.allocator import keep_memory
from dragoman.pictures.labels import plain_table
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Splits
from dragoman.training.losses.objectives import next_token
from dragoman.training.muon import Muon
from dragoman.training.settings import TrainingSettings
from dragoman.training.update import Updater

RESULTS = Path(__file__).resolve().parent / "results" / "limits.json"
KEY = ("work", "precision", "machine")
TOKENS, LEAST, WARMING_UP = 100_000, 5, 2
"""Tokens of all updates that are timed, the fewest such updates, and those before them."""
SHOWN = 0.05
"""Kernels that take less of an update are shown together."""
COPIED = 1 << 21
"""Bytes of an array that is copied to measure the rate of bytes."""


class Work(NamedTuple):
    """The least that a call has to do."""

    operations: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Any) -> Work:
        return Work(self.operations + other.operations, self.bytes + other.bytes)


def product(rows: int, outputs: int, inputs: int, size: int) -> Work:
    """x (P, K) times (K, N): each operand and the result are moved once."""
    moved = rows * inputs + rows * outputs + inputs * outputs
    return Work(2.0 * rows * outputs * inputs, float(size * moved))


def of_weight(args: Sequence[Any], size: int) -> Work:
    parts = (abi.Part * args[5]).from_address(args[4])
    return product(args[7], sum(part.outputs for part in parts), args[6], size)


def of_loss(args: Sequence[Any], size: int) -> Work:
    """The logits, and with gradients those of hidden states and of the output layer."""
    rows, vocabulary, width = args[5:8]
    once = product(rows, vocabulary, width, size)
    return Work(once.operations * (3 if args[11] else 1), size * width * (rows + vocabulary))


def of_attention(backward: bool, args: Sequence[Any], size: int) -> Work:
    """Two products forward; five backward, which makes the weights again."""
    at = args[0]._obj
    lengths = [
        [b - a for a, b in pairwise((ctypes.c_int32 * (at.sentences + 1)).from_address(place))]
        for place in (at.query_offsets, at.key_offsets)
    ]
    pairs = sum(q * (q + 1) / 2 if at.causal else q * k for q, k in zip(*lengths, strict=True))
    keys, values = (3, 2) if backward else (1, 1)
    rows = sum(map(sum, lengths)) * (at.key_width + at.value_width)
    return Work(
        2.0 * pairs * at.heads * (keys * at.key_width + values * at.value_width),
        float(size * at.heads * rows * (2 if backward else 1)),
    )


def of_rows(tensors: Sequence[int], rows: int, width: int, args: Sequence[Any], size: int) -> Work:
    """Arrays of rows that are read or written once, without products."""
    there = sum(1 for place in tensors if args[place])
    return Work(0.0, float(size * args[rows] * args[width] * there))


def of_packing(args: Sequence[Any], size: int) -> Work:
    return Work(0.0, float(sum(args[1]) * args[3] * (4 + 2 * size)))


WORK: dict[str, Callable[[Sequence[Any], int], Work]] = {
    "linear_forward": lambda args, size: product(*args[6:9], size),
    "linear_relu": lambda args, size: product(*args[6:9], size),
    "linear_backward_input": lambda args, size: product(*args[5:8], size),
    "linear_backward_weight": of_weight,
    "cross_entropy": of_loss,
    "attention_forward": partial(of_attention, False),
    "attention_backward": partial(of_attention, True),
    "attention_pairs_forward": partial(of_attention, False),
    "attention_pairs_backward": partial(of_attention, True),
    "norm_forward": partial(of_rows, (0, 1, 4, 5), 7, 8),
    "norm_backward": partial(of_rows, (0, 1, 4, 5), 8, 9),
    "dropout": partial(of_rows, (0, 1, 2), 3, 4),
    "embedding_forward": partial(of_rows, (0, 3, 4), 5, 6),
    "embedding_backward": partial(of_rows, (0, 2, 2), 4, 5),
    "pack_weights": of_packing,
}
"""The work of a call of each kernel, from its arguments and the bytes of an element."""


@dataclass
class Taken:
    """What all calls of one kernel did in an update, and the seconds that they took."""

    calls: float = 0
    seconds: float = 0.0
    work: Work = field(default_factory=Work)


class Watched:
    """The kernels, each of whose calls is noted."""

    def __init__(self) -> None:
        self.taken: dict[str, Taken] = defaultdict(Taken)
        self._kernel = loader.kernel
        loader.kernel = self.kernel

    def kernel(self, name: str, level: str | None = None) -> Any:
        routine = self._kernel(name, level)
        plain = name.removesuffix("_bf16").removesuffix("_fp32")
        return partial(self.call, plain, 2 if name.endswith("_bf16") else 4, routine)

    def call(self, name: str, size: int, routine: Any, *args: Any) -> Any:
        start = time.perf_counter()
        result = routine(*args)
        if name in WORK:
            self.note(name, start, WORK[name](args, size))
        return result

    def note(self, name: str, start: float, work: Work) -> None:
        taken = self.taken[name]
        taken.seconds += time.perf_counter() - start
        taken.calls += 1
        taken.work += work


def of_muon(muon: Muon) -> Work:
    """Half of the matrices in five steps of three products (docs/experiments/muon-time.md)."""
    shapes = [matrix.value.shape for group in muon._groups for matrix in group]
    return Work(sum(15.0 * min(shape) ** 2 * max(shape) for shape in shapes))


def measure(shape: WayShape, precision: str, threads: int) -> tuple[float, dict[str, Taken]]:
    """The seconds of an update, and what its kernels and its optimizer took of them."""
    torch.manual_seed(1)
    torch.set_num_threads(threads)
    model = Transformer(shape.model, shape.vocabulary, shape.vocabulary).train()
    settings = TrainingSettings.model_validate(
        {"precision": precision, "clip_norm": 1.0, "optimizer": {"kind": "muon"}}
    )
    watched = Watched()
    updater = Updater(model, next_token(model, 0.1), settings, lambda _: 1e-4, Ranks())
    state = TrainingState()
    updater.restore(None, state)
    updater.repeat_choices(state)
    assert updater.muon is not None
    moved = Work(bytes=28.0 * sum(span.stop - span.start for span in updater.muon.left))
    for name, optimizer, work in (
        ("Adam", updater.adam, moved), ("Muon", updater.muon, of_muon(updater.muon)),
    ):  # fmt: skip
        optimizer.step = partial(_step, watched, name, work, optimizer.step)
    batches = batches_of(shape)
    with tempfile.TemporaryDirectory() as folder:
        gradients = updater.gradients(1, Splits(Path(folder) / "splits"), print)
        for _ in range(WARMING_UP):
            updater.update(state, lambda *_: batches, gradients)
        watched.taken.clear()
        count, began = max(LEAST, TOKENS // shape.tokens), time.perf_counter()
        for _ in range(count):
            updater.update(state, lambda *_: batches, gradients)
        seconds = (time.perf_counter() - began) / count
    loader.kernel = watched._kernel
    return seconds, {
        name: Taken(one.calls / count, one.seconds / count, Work(*(n / count for n in one.work)))
        for name, one in watched.taken.items()
    }


def _step(watched: Watched, name: str, work: Work, step: Any, *args: Any, **more: Any) -> None:
    start = time.perf_counter()
    step(*args, **more)
    watched.note(name, start, work)


def copy_rate(threads: int, size: int = COPIED) -> float:
    """Bytes per second, read and written, of copies of ``size`` bytes; the best of many."""
    torch.set_num_threads(threads)
    source = torch.zeros(size // 4)
    target, best = torch.empty_like(source), float("inf")
    for _ in range(2000 * COPIED // size):
        start = time.perf_counter()
        target.copy_(source)
        best = min(best, time.perf_counter() - start)
    return 2 * size / best


def rows_of(seconds: float, taken: dict[str, Taken], peak: float, copied: float) -> list[list[Any]]:
    """A row for each kernel: its share of the time in percent, calls, operations and bytes of one
    update, and the share of its limit that it reaches, in percent."""
    rows = []
    for name, one in sorted(taken.items(), key=lambda item: -item[1].seconds):
        if one.seconds / seconds < SHOWN:
            continue
        limit = max(one.work.operations / peak, one.work.bytes / copied)
        rows.append([
            name, round(100 * one.seconds / seconds, 1), round(one.calls),
            round(one.work.operations / 1e9, 2),
            round(one.work.bytes / 1e6, 1),
            "operations" if limit == one.work.operations / peak else "bytes",
            round(100 * limit / one.seconds),
        ])  # fmt: skip
    known = sum(row[1] for row in rows)
    small = sum(one.seconds for one in taken.values()) / seconds * 100 - known
    rest = round(100 - known - small, 1)
    more = ([name, share, *[""] * (len(head("")) - 2)] for name, share in (
        ("smaller kernels", round(small, 1)), ("outside the kernels", rest),
    ))  # fmt: skip
    return [*rows, *more]


def head(whole: str) -> tuple[str, ...]:
    """The header of a table of kernels. ``whole``: what they are parts of, in a word."""
    return ("", f"% of the {whole}", "calls", "GOP", "MB", "limit", "% of the limit")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=[shape.name for shape in SHAPES], action="append")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    keep_memory()
    threads, precision = cores(), arguments.precision
    peak = (tiles_rate(threads) if precision == "bf16" else None) or registers_rate(
        precision, threads
    )
    if peak is None:
        parser.error(f"the peak of {precision} is not known on this machine")
    copied = copy_rate(threads)
    print(f"{machine()}: {peak / 1e9:,.0f} GOP/s in {precision}, {copied / 1e9:,.1f} GB/s")
    results = Results(arguments.results, KEY)
    for shape in SHAPES:
        if shape.name not in (arguments.shape or shape.name):
            continue
        watch = Watch()
        seconds, taken = measure(shape, precision, threads)
        rows = rows_of(seconds, taken, peak, copied)
        table = plain_table(head("update"), rows)
        print(f"\n{shape.name}, {1000 * seconds:,.1f} ms an update\n{table}")
        results.store({
            "work": shape.name, "precision": precision, "peak": peak, "copied": copied,
            "milliseconds": 1000 * seconds, "kernels": rows,
        } | watch.stamp())  # fmt: skip
    print(f"written to {arguments.results}")


if __name__ == "__main__":
    main()
