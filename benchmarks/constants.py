"""Would another value of a constant be faster on this machine?

    python benchmarks/constants.py                  all of them, some minutes
    python benchmarks/constants.py --only rows

A small translator (width 256, 3+3 layers, random weights) translates 400 sentences of 5 to 60
tokens on its fastest path, and is trained on them by the fastest way. The values of one constant
take turns, and the least time of each counts, without the time that threads waited for a core
(``native/stopwatch.py``). Processes and threads are timed by the clock on the wall. Times are
relative to the best of the series.

Written to ``benchmarks/results/constants.json``; ``benchmarks/tables.py`` writes the table.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from provenance import Watch, machine
from results import Results

from dragoman.data.batches import make_batch
from dragoman.inference.fastest import fastest
from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer import Transformer
from dragoman.native.allocator import keep_memory
from dragoman.native.processor import cores
from dragoman.native.stopwatch import Stopwatch
from dragoman.search import offline
from dragoman.search.offline import REFILL_SHARE, STEPS_AT_ONCE, WINDOW, Searcher
from dragoman.search.request import Request
from dragoman.search.scheduler import CAPACITY_ROWS
from dragoman.search.settings import SearchSettings
from dragoman.training.losses.objectives import next_token
from dragoman.training.settings import TrainingSettings
from dragoman.training.speed.fastest_way import Timing, fastest_way

RESULTS = Path(__file__).resolve().parent / "results" / "constants.json"
KEY = ("constant", "machine")

MODEL = {"model_dim": 256, "ffn_dim": 1024, "encoder_layers": 3, "decoder_layers": 3}
VOCABULARY = 8000
SENTENCES = 400
TURNS = 4
TOKENS = 8192
"""Target tokens of an update."""
_PR_SET_THP_DISABLE = 41

Value = int | float | str
Seconds = Callable[[], float]


def lengths(count: int) -> list[int]:
    """Of sentences: most are short, few are long."""
    drawn = np.random.default_rng(0).lognormal(2.9, 0.5, count)
    return [int(one) for one in np.clip(drawn, 5, 60)]


def transformer() -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerSettings.model_validate(MODEL), VOCABULARY, VOCABULARY)


def translating(
    *, beam: int = 4, rows: int = CAPACITY_ROWS, window: int = WINDOW, steps: int = STEPS_AT_ONCE,
    refill: float = REFILL_SHARE, workers: int = 1, count: int = SENTENCES, by_clock: bool = False,
) -> Seconds:  # fmt: skip
    """Times one translation of all sentences; each output is as long as its source."""
    model = transformer()
    with torch.no_grad():
        model.source_embedding.weight[2] = 0.0  # the end symbol never wins
    searched = fastest(model.requires_grad_(False)).searched
    random = np.random.default_rng(1)
    asked = [
        Request(
            torch.from_numpy(random.integers(3, VOCABULARY, length)),
            SearchSettings(beam=beam, max_length=length),
        )
        for length in lengths(count)
    ]
    offline.REFILL_SHARE = refill
    searcher = Searcher(searched, bos=1, eos=2, capacity_rows=rows, window=window, workers=workers)

    def seconds() -> float:
        offline.STEPS_AT_ONCE = steps
        began, watch = time.perf_counter(), Stopwatch()
        for _ in searcher(asked):
            pass
        return time.perf_counter() - began if by_clock else watch.seconds(1)

    return seconds


def training(tokens: int) -> Seconds:
    """Times an update of ``TOKENS`` target tokens, ``tokens`` at once: what the fastest way takes
    for it, found in a second."""
    random = np.random.default_rng(2)
    batches, total = [], 0
    while total < TOKENS:
        texts, sum_ = [], 0
        for length in lengths(1000):
            if sum_ + length + 1 > tokens:
                break
            texts.append(random.integers(3, VOCABULARY, length).astype(np.int32))
            sum_ += length + 1
        batches.append(make_batch(texts, texts, 1, 2))
        total += sum_
    model = transformer()
    makes = [partial(lambda batch: batch, batch) for batch in batches]

    def seconds() -> float:
        found = fastest_way(
            model, next_token(model, 0.1), TrainingSettings(), lambda *_: makes,
            timing=Timing(least=1.0, most=3.0, longest=5.0),
        )  # fmt: skip
        return 1 / found.rates[found.way]

    return seconds


def in_processes(count: int) -> Seconds:
    """Times ``cores`` translations of all sentences: by threads of one process, or by processes."""

    def seconds() -> float:
        job = {"workers": cores() // count, "count": SENTENCES * cores() // count}
        job |= {"by_clock": True}
        command = [sys.executable, __file__, "--job", json.dumps(job)]
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
            for _ in range(count)
        ]
        for one in started:  # until all are ready
            assert one.stdout is not None
            one.stdout.readline()
        for one in started:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        return max(float(one.communicate()[0]) for one in started)

    return seconds


def work(job: dict[str, Any]) -> None:
    """What a process of ``in_processes`` does, from the word "go" on."""
    torch.set_num_threads(1)
    seconds = translating(**job)
    seconds()
    print("ready", flush=True)
    sys.stdin.readline()
    print(min(seconds() for _ in range(3)))


def with_large_pages(part: str, allowed: bool) -> Seconds:
    """Times ``part`` in a process of its own, where the system may give pages of 2 MB or not."""

    def seconds() -> float:
        command = [sys.executable, __file__, "--pages", part, "on" if allowed else "off"]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return seconds


def pages(part: str, allowed: bool) -> None:
    if not allowed and ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:
        raise SystemExit("this system cannot keep large pages from a process")
    keep_memory()
    seconds = translating() if part == "translating" else training(TOKENS)
    print(min(seconds() for _ in range(TURNS)))


SERIES: dict[str, tuple[Value | None, dict[Value, Callable[[], Seconds]]]] = {
    "rows of a batch, beam 4": (
        CAPACITY_ROWS,
        {n: partial(translating, rows=n) for n in (16, 32, 48, 64, 96, 128, 256)},
    ),
    "rows of a batch, greedy": (
        CAPACITY_ROWS,
        {n: partial(translating, beam=1, rows=n) for n in (16, 32, 64, 128, 256)},
    ),
    "sentences sorted together": (
        WINDOW,
        {n: partial(translating, window=n, count=2000) for n in (64, 250, 1000, 4000)},
    ),
    "steps of a native search at once": (
        STEPS_AT_ONCE,
        {n: partial(translating, steps=n) for n in (4, 16, 64, 256)},
    ),
    "share of rows that is free before a batch is refilled": (
        REFILL_SHARE,
        {n: partial(translating, refill=n) for n in (0.1, 0.25, 0.5, 0.75, 1.0)},
    ),
    "target tokens of a micro-batch": (
        4096,
        {n: partial(training, n) for n in (512, 1024, 2048, 4096, 8192)},
    ),
    "processes that translate": (1, {n: partial(in_processes, n) for n in (1, cores())}),
    "pages of 2 MB, translating": (
        "on",
        {n: partial(with_large_pages, "translating", n == "on") for n in ("on", "off")},
    ),
    "pages of 2 MB, training": (
        "on",
        {n: partial(with_large_pages, "training", n == "on") for n in ("on", "off")},
    ),
}
"""What is in use, and the values that are tried."""


def measure(values: dict[Value, Callable[[], Seconds]]) -> dict[Value, float]:
    """The least seconds of each, in turns."""
    timed = {value: prepare() for value, prepare in values.items()}
    best = dict.fromkeys(timed, float("inf"))
    for turn in range(TURNS + 1):
        for value, seconds in timed.items():
            found = seconds()
            if turn:  # the first finds everything cold
                best[value] = min(best[value], found)
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", help="series whose name begins so")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--pages", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.job:
        return work(given.job)
    if given.pages:
        return pages(given.pages[0], given.pages[1] == "on")
    torch.set_num_threads(1)
    print(machine())
    results = Results(given.results, KEY)
    for name, (used, values) in SERIES.items():
        if given.only and not name.startswith(tuple(given.only)):
            continue
        watch = Watch()
        if name.startswith("target tokens"):
            torch.set_num_threads(cores())
        best = measure(values)
        torch.set_num_threads(1)
        least = min(best.values())
        times = {str(value): round(seconds / least, 2) for value, seconds in best.items()}
        print(f"{name} (in use: {used}): {times}", flush=True)
        results.store({"constant": name, "used": str(used), "times": times} | watch.stamp())
    print(f"written to {given.results}")


if __name__ == "__main__":
    main()
