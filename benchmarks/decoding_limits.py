"""How near each part of a decoding step in int8 comes to the limit of one core of this machine.

    python benchmarks/decoding_limits.py    about half a minute; needs Linux's ``perf``

One native call takes a whole step, so ``perf`` says which of its functions the processor is in,
4,000 times a second. Operations and bytes follow from the sizes. Limits are those of ``limits.py``,
for one core and copies as large as what a step reads, since a large model does not fit the caches.
Results go to ``benchmarks/results/limits.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from limits import KEY, RESULTS, Taken, Work, copy_rate, head, product, rows_of
from peak import registers_rate
from provenance import Watch, machine
from results import Results

from dragoman.engine.ways import SHAPES, WayShape
from dragoman.models.transformer.int8 import Int8Transformer
from dragoman.models.transformer.int8_search import Int8Searching
from dragoman.models.transformer.model import Transformer
from dragoman.pictures.labels import plain_table

SAMPLES = 4_000
"""Samples of ``perf`` in a second."""
SECONDS = 4.0
LENGTH, STEPS, BEST = 12, 20, 1
"""Tokens of a source, steps of a search, and tokens of which the best is kept in a step."""
ROWS = (1, 64)
FUNCTIONS = {
    "the best token": r"look_at_panel|\binsert\b",
    "output layer": r"\blook_at_all<",
    "feed-forward, inner": r"\bfeed_forward_by<",
    "outputs into the stream": r"\badd_projection\(",
    "queries, keys and values": r"\bself_attention\(",
    "queries of cross-attention": r"\bcross_attention\(",
    "attention": r"\battend\b",
    "norms": r"\b(normalise|norm_rows)\b",
}
"""A pattern of the symbols of each part of a step; the first that fits counts."""
ONCE = r"decode_model_|write_memory|pack_model"
"""The symbols of what is done once for a model or a source, not in a step."""


def work_of(shape: WayShape, rows: int) -> dict[str, Work]:
    """The operations and bytes of one step of ``rows`` hypotheses, on average over ``STEPS``.

    The weights are read once; rows are bytes, and keys and values bf16."""
    width, layers, hidden = shape.model.model_dim, shape.model.decoder_layers, shape.model.ffn_dim
    seen = LENGTH + (STEPS + 1) / 2

    def of(outputs: int, inputs: int, times: int = layers) -> Work:
        one = product(rows, outputs, inputs, 1)
        return Work(times * one.operations, times * one.bytes)

    attention = 4.0 * rows * layers * seen * width
    return {
        "output layer": of(shape.vocabulary, width, 1),
        "feed-forward, inner": of(hidden, width),
        "outputs into the stream": of(width, hidden) + of(width, width, 2 * layers),
        "queries, keys and values": of(3 * width, width),
        "queries of cross-attention": of(width, width),
        "attention": Work(attention, attention),
        "norms": Work(0.0, rows * (3.0 * layers + 1) * width * 9),
        "the best token": Work(0.0, 4.0 * rows * shape.vocabulary),
    }


def search(shape: WayShape, rows: int, seconds: float) -> tuple[int, float]:
    """Take steps for so long. Returns how many, and the seconds in them."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Int8Transformer(Transformer(shape.model, shape.vocabulary, shape.vocabulary).eval())
    draw = np.random.default_rng(1)
    encoded = draw.standard_normal((rows * LENGTH, shape.model.model_dim), np.float32)
    lengths = np.full(rows, LENGTH, np.int32)
    tokens = draw.integers(4, shape.vocabulary, (STEPS, rows, 1))
    steps, taken = 0, 0.0
    while taken < seconds:
        searching = Int8Searching(model.search)
        searching.state.admit(encoded, lengths, None, None)
        start = time.perf_counter()
        for given in tokens:
            searching.best(given, BEST)
        taken += time.perf_counter() - start
        steps += STEPS
    return steps, taken


def measure(shape: WayShape, rows: int) -> tuple[float, dict[str, Taken]]:
    """The seconds of a step, and what its parts took of them."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        command = [sys.executable, __file__, "--search", shape.name, str(rows)]
        perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES), "-o", str(data)]
        done = subprocess.run([*perf, *command], capture_output=True, text=True, check=True)
        steps, seconds = json.loads(done.stdout.splitlines()[-1])
        report = ["perf", "report", "-i", str(data), "--stdio", "-F", "sample,symbol", "-g", "none"]
        said = subprocess.run(
            [*report, "--dsos", "libdragoman.so"], capture_output=True, text=True, check=True
        )
    taken: dict[str, Taken] = defaultdict(Taken)
    for line in said.stdout.splitlines():
        found = re.match(r"\s*(\d+)\s+\[\.\]\s+(.*)", line)
        if found is None or re.search(ONCE, found[2]):
            continue
        fitting = (name for name, like in FUNCTIONS.items() if re.search(like, found[2]))
        name = next(fitting, "rest of the native step")
        taken[name].seconds += int(found[1]) / SAMPLES / steps
        taken[name].calls = 1
    for name, work in work_of(shape, rows).items():
        taken[name].work = work
    return seconds / steps, taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--search", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    shapes = {shape.name: shape for shape in SHAPES[1:]}
    if arguments.search:
        name, rows = arguments.search
        print(json.dumps(search(shapes[name], int(rows), SECONDS)))
        return
    peak = registers_rate("int8", 1)
    if peak is None or shutil.which("perf") is None:
        parser.error("this machine has no AVX512-VNNI, no compiler or no perf")
    print(f"{machine()}: {peak / 1e9:,.0f} GOP/s in int8, one core")
    results = Results(arguments.results, KEY)
    for shape in shapes.values():
        for rows in ROWS:
            watch = Watch()
            copied = copy_rate(1, int(sum(one.bytes for one in work_of(shape, rows).values())))
            seconds, taken = measure(shape, rows)
            work, table = f"a step of {rows}, {shape.name}", rows_of(seconds, taken, peak, copied)
            shown = plain_table(head("step"), table)
            print(f"\n{work}: {1e3 * seconds:,.3f} ms; {copied / 1e9:,.1f} GB/s\n{shown}")
            results.store({
                "work": work, "precision": "int8", "peak": peak, "copied": copied,
                "milliseconds": 1000 * seconds, "kernels": table,
            } | watch.stamp())  # fmt: skip
    print(f"written to {arguments.results}")


if __name__ == "__main__":
    main()
