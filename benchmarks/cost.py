"""How cost grows: time and memory against length, vocabulary and beam; how long it takes to start.

    python benchmarks/cost.py              all of it, some minutes
    python benchmarks/cost.py --tiny       the same in little, to see that it runs
    python benchmarks/cost.py --lines 1000000    also: memory while so many lines are translated

Every point is measured in a process of its own, since memory is the most that a process has held.
Each series is written as soon as it is measured, with its provenance. Writes
``benchmarks/results/cost.json``, a chart of each series beside it, and prints the tables that stand
in ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from provenance import Watch
from results import Results

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"

LENGTHS = (64, 128, 256, 512, 1024, 2048)
VOCABULARIES = (8_000, 32_000, 64_000)
BEAMS = (1, 2, 4, 8, 16)
TOKENS = 4096
"""Target tokens of an update."""
SMALL = {"model_dim": 256, "ffn_dim": 1024, "encoder_layers": 3, "decoder_layers": 3}

Found = dict[str, float]


# ---- what a process of its own measures


def train(length: int, vocabulary: int, tokens: int, seconds: float) -> Found:
    """An update of ``tokens`` target tokens in sentences of ``length``."""
    import numpy as np
    import torch

    from dragoman.data.batches import Batch, make_batch
    from dragoman.models.settings import TransformerSettings
    from dragoman.models.transformer.model import Transformer
    from dragoman.training.fastest_way import measure_throughput
    from dragoman.training.losses.objectives import next_token
    from dragoman.training.settings import TrainingSettings

    torch.manual_seed(0)
    model = Transformer(TransformerSettings.model_validate(SMALL), vocabulary, vocabulary)
    generator = np.random.default_rng(0)
    texts = [
        generator.integers(3, vocabulary, length - 1).astype(np.int32)
        for _ in range(max(1, tokens // length))
    ]

    def make() -> Batch:
        return make_batch(texts, texts, 1, 2)

    found = measure_throughput(
        model, next_token(model, 0.1), TrainingSettings(), lambda *_: [make], seconds=seconds
    )
    return {
        "seconds": found.seconds_per_update,
        "memory_mb": found.peak_bytes / 2**20,
        "tokens_per_second": found.tokens_per_second,
    }


def attention(length: int, kernels: int) -> Found:
    """Memory that one attention layer adds, forward and backward, for one sequence."""
    import torch

    from dragoman.nn.attention import MultiHeadAttention
    from dragoman.nn.layout import Layout
    from dragoman.nn.linear import use_precision
    from dragoman.nn.settings import AttentionSettings

    torch.manual_seed(0)
    layer = MultiHeadAttention(AttentionSettings(num_heads=8), 256, "measured")
    use_precision(layer, "fp32", by_kernels=bool(kernels))

    def work(count: int) -> None:
        x = torch.randn(count, 256, requires_grad=True)
        layout = Layout([count])
        layer(x, layout, x, layout, causal=True).sum().backward()

    work(16)
    before = resident_mb()
    began = time.perf_counter()
    work(length)
    return {"memory_mb": resident_mb() - before, "seconds": time.perf_counter() - began}


def translate(length: int, beam: int, sentences: int) -> Found:
    """Outputs as long as their sources, on the fastest path of this machine."""
    import torch

    from dragoman.models.catalogue.fastest import fastest
    from dragoman.models.settings import TransformerSettings
    from dragoman.models.transformer.model import Transformer
    from dragoman.search.offline import Searcher
    from dragoman.search.request import Request
    from dragoman.search.settings import SearchSettings

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Transformer(TransformerSettings.model_validate(SMALL), 8000, 8000)
    with torch.no_grad():
        model.source_embedding.weight[2] = 0.0  # the end symbol never wins
    path = fastest(model.requires_grad_(False))
    searcher = Searcher(path.searched, bos=1, eos=2, workers=len(os.sched_getaffinity(0)))
    settings = SearchSettings(beam=beam, max_length=length)
    asked = [Request(torch.randint(3, 8000, (length,)), settings) for _ in range(sentences)]
    times = []
    for _ in range(4):
        began = time.perf_counter()
        list(searcher(asked))
        times.append(time.perf_counter() - began)
    return {"ms_per_sentence": statistics.median(times[1:]) / sentences * 1e3}


def resident_mb() -> float:
    """The most that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


PARTS: dict[str, Callable[..., Found]] = {
    "train": train, "attention": attention, "translate": translate
}  # fmt: skip


def alone(part: str, **arguments: float) -> Found:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--part", part, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{part} {arguments} failed:\n{done.stderr}")
    found: Found = json.loads(done.stdout.splitlines()[-1])
    print(f"{part} {arguments}: { ({k: round(v, 3) for k, v in found.items()}) }", flush=True)
    return found


# ---- starting, and going on for long


def starting(repeats: int) -> list[dict[str, Any]]:
    """Seconds until a program that was just started has done something: median of several."""
    from translating.works import text_work

    from dragoman.tasks.catalogue import Run

    program = [sys.executable, "-m", "dragoman"]
    wanted = {
        "dragoman --help": [*program, "--help"],
        "import dragoman": [sys.executable, "-c", "import dragoman"],
        "import torch": [sys.executable, "-c", "import torch"],
    }
    with tempfile.TemporaryDirectory() as name:
        for subwords, text in ((4_000, made_up(2_000)), (37_000, made_up(40_000, words=100_000))):
            folder = Path(name) / str(subwords)
            folder.mkdir()
            text_work("start", text, folder, subwords)
            size = Run.open(folder / "run").target.size
            wanted[f"dragoman translate, base model of {size:,} subwords, one sentence"] = [
                *program, "translate", str(folder / "run"), "-q", "--set", "max_length=20",
                "A sentence of words.",
            ]  # fmt: skip
        rows = []
        for what, command in wanted.items():
            times = []
            for _ in range(repeats + 1):
                began = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                times.append(time.perf_counter() - began)
            rows.append({"what": what, "seconds": statistics.median(times[1:])})
            print(f"{what}: {rows[-1]['seconds']:.2f} s", flush=True)
        return rows


def made_up(lines: int, words: int = 5_000) -> list[str]:
    """Sentences of made-up words, enough of them to learn subwords from."""
    draw = random.Random(0)
    syllables = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er")]
    known = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(words)]
    return [" ".join(draw.choices(known, k=10)) for _ in range(lines)]


def many_lines(count: int) -> list[dict[str, float]]:
    """Memory of a translator while ``count`` lines go through it."""
    from translating.works import text_work

    with tempfile.TemporaryDirectory() as name:
        text_work("lines", made_up(2000), Path(name))
        done = subprocess.run(
            [sys.executable, "-c", MANY_LINES, str(Path(name) / "run"), str(count)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    points = [line.split() for line in done.stdout.splitlines()]
    return [{"lines": int(n), "memory_mb": float(mb)} for n, mb in points]


MANY_LINES = """
import sys, dragoman
from dragoman.search.settings import SearchSettings
translator, count = dragoman.load(sys.argv[1]), int(sys.argv[2])
lines = (f"A sentence of {n} words." for n in range(count))
settings = SearchSettings(beam=1, max_length=6)
for n, _ in enumerate(translator.stream(lines, settings=settings), 1):
    if n % max(1, count // 20) == 0:
        pages = int(open("/proc/self/statm").read().split()[1])
        print(n, pages * 4096 / 2**20, flush=True)
"""


# ---- all of it


def series(tiny: bool, lines: int) -> dict[str, Callable[[], list[dict[str, Any]]]]:
    """Each series of the results by name, to be measured by calling it."""
    lengths: Sequence[int] = LENGTHS[:2] if tiny else LENGTHS
    vocabularies: Sequence[int] = VOCABULARIES[:1] if tiny else VOCABULARIES
    beams: Sequence[int] = BEAMS[:2] if tiny else BEAMS
    training = {"tokens": 512, "seconds": 0.1} if tiny else {"tokens": TOKENS, "seconds": 5.0}
    every: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "train_length": lambda: [
            {"length": n} | alone("train", length=n, vocabulary=8000, **training) for n in lengths
        ],
        "train_vocabulary": lambda: [
            {"vocabulary": v} | alone("train", length=64, vocabulary=v, **training)
            for v in vocabularies
        ],
        "attention": lambda: [
            {"length": n, "kernels": k} | alone("attention", length=n, kernels=k)
            for k in (1, 0)
            for n in (lengths if tiny else (*lengths, 4096, 8192))
        ],
        "translate_length": lambda: [
            {"length": n, "beam": b}
            | alone("translate", length=n, beam=b, sentences=4 if tiny else max(8, 4096 // n))
            for b in (1, 4)
            for n in (8, 16, 32, *lengths)
            if n <= 512
        ],
        "translate_beam": lambda: [
            {"beam": b} | alone("translate", length=16, beam=b, sentences=8 if tiny else 256)
            for b in beams
        ],
        "start": lambda: starting(1 if tiny else 5),
    }
    return every | ({"lines": lambda: many_lines(lines)} if lines else {})


def draw(results: dict[str, Any], folder: Path) -> list[Path]:
    """A chart of each series -> the files."""
    from dragoman.pictures.chart import chart_svg
    from dragoman.pictures.records import Chart, Series

    def line(name: str, rows: list[dict[str, Any]], x: str, y: str) -> Series:
        return Series(name, [row[x] for row in rows], [row[y] for row in rows])

    by_length, attending = results.get("train_length", []), results.get("attention", [])
    by_beam, translating = results.get("translate_beam", []), results.get("translate_length", [])
    charts = {
        "cost-train-time": Chart(
            "An update of 4,096 tokens", [line("3+3 layers", by_length, "length", "seconds")],
            "tokens of a sentence", "seconds", log_x=True, from_zero=True,
        ),
        "cost-train-memory": Chart(
            "Memory of training", [line("3+3 layers", by_length, "length", "memory_mb")],
            "tokens of a sentence", "MB", log_x=True, from_zero=True,
        ),
        "cost-attention-memory": Chart(
            "Memory of one attention layer",
            [
                line(name, [r for r in attending if r["kernels"] == k], "length", "memory_mb")
                for k, name in ((1, "kernels"), (0, "plain torch"))
            ],
            "tokens", "MB", log_x=True, from_zero=True,
        ),
        "cost-translate-length": Chart(
            "Translating",
            [
                line(
                    f"beam {b}", [r for r in translating if r["beam"] == b],
                    "length", "ms_per_sentence",
                )
                for b in (1, 4)
            ],
            "tokens of a sentence", "ms a sentence", log_x=True, log_y=True,
        ),
        "cost-translate-beam": Chart(
            "Translating 16 tokens",
            [line("3+3 layers", by_beam, "beam", "ms_per_sentence")],
            "beam", "ms a sentence", from_zero=True,
        ),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, chart in charts.items():
        if not all(one.y for one in chart.series):
            continue  # a series that was not measured yet
        path = folder / f"{name}.svg"
        path.write_text(chart_svg(chart), encoding="utf-8")
        paths.append(path)
    return paths


def table(rows: list[dict[str, Any]]) -> str:
    """A series, for benchmarks/README.md."""
    keys = list(rows[0])
    lines = [f"| {' | '.join(keys)} |", "|" + "---|" * len(keys)]
    lines += [f"| {' | '.join(_cell(row[key]) for key in keys)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:,.3g}" if isinstance(value, float) and value < 100 else (
        f"{value:,.0f}" if isinstance(value, int | float) else str(value)
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--lines", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="series to measure anew, such as start")
    parser.add_argument("--resume", action="store_true",
                        help="keep series of this commit and machine")  # fmt: skip
    parser.add_argument("--to", type=Path, default=RESULTS, help="folder for what is written")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(PARTS[arguments.part[0]](**json.loads(arguments.part[1]))))
        return
    results = Results(arguments.to / "cost.json", ("series",))
    every = series(arguments.tiny, arguments.lines)
    if unknown := set(arguments.only or ()) - every.keys():
        parser.error(f"--only {', '.join(sorted(unknown))}: there are {', '.join(every)}")
    for name in arguments.only or every:
        if not (arguments.resume and results.has({"series": name})):
            watch = Watch()
            points = every[name]()
            results.store({"series": name, "points": points} | watch.stamp())
    found = {row["series"]: row["points"] for row in results.rows()}
    print("\n\n".join(f"{name}\n\n{table(points)}" for name, points in found.items()))
    print("drawn:", *(str(path) for path in draw(found, arguments.to)))


if __name__ == "__main__":
    main()
