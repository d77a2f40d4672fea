"""Training speed beside other programs: same weights, same batches.

    python benchmarks/train.py                              random sentences, speed alone
    python benchmarks/train.py --source train.en --target train.de
                                                            real text: losses mean something too
    python benchmarks/train.py --only joeynmt               one toolkit, also at train-d512
    python benchmarks/train.py --device cuda                base and big, on a GPU
    python benchmarks/train.py --resume                     goes on where an earlier call ended

Every program is measured beside ours, in the precision in which ours is faster on this machine:
both are started anew from the same weights and see the same updates in the same order, at the same
learning rates, in turns of a few updates, each in a process (and an environment) of its own. First
both are warmed up until their rates are flat, then some turns are timed (``turns.py``); the row is
written, and the next program follows. Tokens are real target tokens, end symbols counted. Kinds:
ours; shipped (a plain loop, or a toolkit's own step); tuned (glibc told to keep memory, eager
attention, fused Adam).

What runs is what the machine has: bf16 only where the processor multiplies it itself, native
kernels only where there are some. The share is of the rate of matrix products in the row's own
precision, measured between its turns on the products of that model; where the processor has Intel's
tiles, also of their peak (``peak.py``). Results go to
``benchmarks/results/train.json``.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from instructions import LIMITS, keep_to, results_file
from peak import tiles_rate
from peers import Stopped
from provenance import Watch, machine
from results import Results, Row
from training.systems import Program, System, programs, quickest_of_ours, wanted
from translating.works import lines_of
from turns import MOST, take_turns

from dragoman.engine.machine import cores
from dragoman.forms.subwords.text import TextSettings
from dragoman.forms.subwords.vocabulary_learning import learn_vocabulary
from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.nn.embedding import sinusoidal
from dragoman.nn.linear import InferenceLinear

RESULTS = Path(__file__).resolve().parent / "results" / "train.json"
KEY = ("work", "system", "kind", "precision")

WORKS: dict[str, dict[str, Any]] = {
    "train-d256": {
        "model": {"model_dim": 256, "ffn_dim": 1024, "encoder_layers": 3, "decoder_layers": 3},
        "vocabulary": 8000, "peak": 2e-3, "warmup": 1000, "turn": 3,
    },
    "train-d512": {
        "model": {"model_dim": 512, "ffn_dim": 2048, "encoder_layers": 6, "decoder_layers": 6},
        "vocabulary": 32000, "peak": 7e-4, "warmup": 4000, "turn": 2,
    },
    "train-base": {
        "model": {"model_dim": 512, "ffn_dim": 2048, "encoder_layers": 6, "decoder_layers": 6},
        "vocabulary": 37000, "peak": 7e-4, "warmup": 4000, "tokens": 25_000, "turn": 10,
    },
    "train-big": {
        "model": {"model_dim": 1024, "ffn_dim": 4096, "encoder_layers": 6, "decoder_layers": 6,
                  "attention": {"num_heads": 16}},
        "vocabulary": 37000, "peak": 5e-4, "warmup": 4000, "tokens": 25_000, "turn": 5,
    },
}  # fmt: skip
"""Sizes, learning rates, and how many updates a turn has."""

OF_DEVICE = {"cpu": ("train-d256", "train-d512"), "cuda": ("train-base", "train-big")}
"""What is measured unless ``--work`` says otherwise: the paper's own sizes where there is a GPU."""

Pair = tuple[list[int], list[int]]
Update = list[list[list[int]]]
"""Sources, targets."""


def pairs_of_text(source: Path, target: Path, vocabulary: int) -> list[Pair]:
    """Two files of lines -> token ids, by one vocabulary trained on both."""
    texts = [lines_of(source), lines_of(target)]
    form = learn_vocabulary([*texts[0], *texts[1]], TextSettings(vocabulary=vocabulary), seed=1)
    ids = [[s.tolist() for s in form.encode(side)] for side in texts]
    return [(s, t) for s, t in zip(*ids, strict=True) if 0 < len(s) < 200 and 0 < len(t) < 200]


def random_pairs(count: int, vocabulary: int) -> list[Pair]:
    """Token ids with lengths like those of image captions."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(13.5, 4.0, count).round().astype(int), 3, 40)
    others = np.clip(lengths + generator.integers(-2, 3, count), 3, 40)
    return [
        (
            generator.integers(3, vocabulary, a).tolist(),
            generator.integers(3, vocabulary, b).tolist(),
        )
        for a, b in zip(lengths, others, strict=True)
    ]


def batches(pairs: list[Pair], tokens: int, draw: random.Random) -> list[Update]:
    """Updates of at most ``tokens`` target tokens, sentences of like length together, shuffled."""
    pairs = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]), draw.random()))
    made: list[Update] = []
    sources: list[list[int]] = []
    targets: list[list[int]] = []
    held = 0
    for source, target in pairs:
        if held + len(target) + 1 > tokens:
            made.append([sources, targets])
            sources, targets, held = [], [], 0
        sources.append(source)
        targets.append(target)
        held += len(target) + 1
    draw.shuffle(made)
    return made


def write_work(folder: Path, arguments: argparse.Namespace, work: dict[str, Any]) -> None:
    """What every system reads: model, weights, updates, sentences held out."""
    settings = TransformerSettings.model_validate(work["model"] | {"dropout": arguments.dropout})
    torch.manual_seed(arguments.seed)
    model = Transformer(settings, work["vocabulary"], work["vocabulary"])
    arrays = {name: value.numpy() for name, value in model.state_dict().items()}
    arrays["positions"] = sinusoidal(torch.arange(512), settings.model_dim).float().numpy()
    np.savez(folder / "weights.npz", **arrays)
    if arguments.source:
        pairs = pairs_of_text(arguments.source, arguments.target, work["vocabulary"])
    else:
        pairs = random_pairs(30_000, work["vocabulary"])
    draw = random.Random(arguments.seed)
    draw.shuffle(pairs)
    held_out, rest = pairs[:500], pairs[500:]
    tokens = arguments.tokens or work.get("tokens", 4096)
    turn = arguments.turn or work["turn"]
    updates: list[Update] = []
    while len(updates) < turn * (MOST + arguments.turns):
        more = alike(batches(rest, tokens, draw), turn, draw)
        if not more:
            sys.exit(f"the text is too short for {turn} updates of {tokens} tokens")
        updates += more
    plan = {
        "model": json.loads(settings.model_dump_json()), "vocabulary": work["vocabulary"],
        "peak": work["peak"], "warmup": work["warmup"], "smoothing": 0.1, "clip_norm": 1.0,
        "seed": arguments.seed, "threads": cores(), "device": arguments.device,
    }  # fmt: skip
    looked_at = batches(held_out, tokens, draw) or [list(zip(*held_out, strict=True))]
    for name, content in (("plan", plan), ("updates", updates), ("held_out", looked_at)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def alike(updates: list[Update], turn: int, draw: random.Random) -> list[Update]:
    """Put updates in turns that are alike: each has one of short sentences, …, one of long ones.

    Rates of different turns then differ by what machine and programs do, not by the work.
    """
    updates = sorted(updates, key=lambda update: len(update[1][-1]))
    count = len(updates) // turn
    parts = [updates[i * count : (i + 1) * count] for i in range(turn)]
    for part in parts:
        draw.shuffle(part)
    return [update for one_of_each in zip(*parts, strict=True) for update in one_of_each]


def measure(
    name: str, folder: Path, arguments: argparse.Namespace, ours: Program, program: Program
) -> Row:
    """Train a program and ours in turns -> its row of the results file."""
    watch, work = Watch(), WORKS[name]
    turn = arguments.turn or work["turn"]
    products: list[float] = []

    def look_at_machine() -> None:
        products.append(matrix_rate(work, arguments.device, program.precision))

    running: list[System] = []
    try:
        running.append(ours.start(folder))
        if program != ours:
            running.append(program.start(folder))
        timed = take_turns(
            [lambda s=s: s.train(turn) for s in running],  # type: ignore[misc]
            arguments.turns, look_at_machine,
        )  # fmt: skip
        held_out = [system.ask({"look": True})["held_out_nll"] for system in running]
    finally:
        for system in running:
            system.end()
    its = running[-1]
    updates = json.loads((folder / "updates.json").read_text(encoding="utf-8"))
    operations = statistics.mean(
        operations_per_token(work, *update)
        for update in updates[len(its.losses) - turn * arguments.turns : len(its.losses)]
    )
    median, products_rate = statistics.median(timed.rates[-1]), statistics.median(products)
    tiles = tiles_rate(cores()) if arguments.device == "cpu" else None
    row = {
        "work": name, "system": program.name, "version": its.version, "kind": program.kind,
        "precision": program.precision, "unit": "target tokens/s", "median": round(median),
        "runs": [round(rate) for rate in timed.rates[-1]],
        "warm_up": [round(rate) for rate in timed.warming[-1]], "flat": timed.flat,
        "updates": len(its.losses), "updates_of_a_turn": turn,
        "train_loss": round(statistics.mean(its.losses[-20:]), 4),
        "held_out_nll": round(held_out[-1], 4), "memory_mb": round(its.memory_mb),
        "ours": {
            "system": ours.name, "precision": ours.precision,
            "runs": [round(rate) for rate in timed.rates[0]],
            "warm_up": [round(rate) for rate in timed.warming[0]],
            "held_out_nll": round(held_out[0], 4), "memory_mb": round(running[0].memory_mb),
        },
        "ours_is_faster_by": round(timed.faster_by(), 2),
        "products_gflops": round(products_rate / 1e9, 1),
        "share_of_products": round(median * operations / products_rate, 3),
        "text": bool(arguments.source), "seed": arguments.seed,
    }  # fmt: skip
    if tiles is not None:
        row["tiles_gflops"] = round(tiles / 1e9, 1)
        row["share_of_tiles"] = round(median * operations / tiles, 3)
    print(
        f"{name} {program.label:40} {row['median']:7,} tokens/s "
        f"({min(row['runs']):,} to {max(row['runs']):,}), ours x {row['ours_is_faster_by']}  "
        f"{row['memory_mb']} MB  {row['updates']} updates"
        f"{'' if timed.flat else ', NOT FLAT'}  nll held out {row['held_out_nll']} "
        f"(ours {row['ours']['held_out_nll']})  {row['share_of_products']:.0%} of products"
        + (f", {row['share_of_tiles']:.1%} of the tiles' peak" if tiles is not None else ""),
        flush=True,
    )
    return row | watch.stamp()


PRECISIONS = {"bf16": "bfloat16", "fp32": "float32"}


def operations_per_token(work: dict[str, Any], sources: Any, targets: Any) -> float:
    """Multiplications and additions of a step's matrix products (attention itself aside), by
    target token: forward once, backward twice."""
    model, vocabulary = work["model"], work["vocabulary"]
    width, hidden = model["model_dim"], model["ffn_dim"]
    layer = 4 * width * width + 2 * width * hidden
    source = sum(len(s) + 1 for s in sources)
    target = sum(len(t) + 1 for t in targets)
    reads = model["encoder_layers"] * layer + model["decoder_layers"] * 2 * width * width
    writes = model["decoder_layers"] * (layer + 2 * width * width) + width * vocabulary
    return 6.0 * (source * reads + target * writes) / target


def matrix_rate(work: dict[str, Any], device: str, precision: str) -> float:
    """Operations per second of torch's fastest product on this model's largest shapes.

    On a CPU that is the better of torch's own choice and of oneDNN over weights laid out once.
    """
    rows, dtype = work.get("tokens", 4096), getattr(torch, PRECISIONS[precision])
    torch.set_num_threads(cores())
    width, hidden = work["model"]["model_dim"], work["model"]["ffn_dim"]
    done, seconds = 0.0, 0.0
    for inputs, outputs in ((width, width), (width, hidden), (hidden, width)):
        x = torch.randn(rows, inputs, device=device).to(dtype)
        weight = torch.randn(outputs, inputs, device=device).to(dtype)
        out = torch.empty(rows, outputs, dtype=dtype, device=device)
        ways = [partial(torch.mm, x, weight.t(), out=out)]
        if device == "cpu":
            ways.append(partial(InferenceLinear(weight, None, dtype), x))
        times = []
        for way in ways * 5:
            start = time.perf_counter()
            way()
            if device != "cpu":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        done += 2.0 * rows * inputs * outputs
        seconds += min(times)
    return done / seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--device",
        choices=OF_DEVICE,
        default="cpu",
        help="cuda: one GPU, on which no toolkit is run",
    )
    parser.add_argument("--work", choices=WORKS, action="append", help="default: the device's")
    parser.add_argument("--source", type=Path, help="lines to learn from (.gz too)")
    parser.add_argument("--target", type=Path, help="their translations")
    parser.add_argument("--tokens", type=int, help="target tokens per update (4,096; GPU 25,000)")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--turns", type=int, default=5, help="timed turns of each program")
    parser.add_argument("--turn", type=int, help="updates of a turn, if not the work's own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="parts of name:kind:precision, e.g. ours :bf16")
    parser.add_argument("--resume", action="store_true",
                        help="keep rows of this commit and machine")  # fmt: skip
    parser.add_argument("--peer-python", type=Path, help="an environment that is there")
    parser.add_argument("--instructions", choices=LIMITS, help="keep all programs to these")
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    keep_to(arguments.instructions)
    arguments.results = arguments.results or results_file(RESULTS, arguments.instructions)
    if (arguments.source is None) != (arguments.target is None):
        parser.error("--source and --target go together")
    print(machine())
    results, stopped = Results(arguments.results, KEY), []
    every = programs(arguments)
    for name in arguments.work or OF_DEVICE[arguments.device]:
        with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as folder:
            write_work(Path(folder), arguments, WORKS[name])
            turn = arguments.turn or WORKS[name]["turn"]
            ours = quickest_of_ours(every, Path(folder), turn)
            for program in every:
                row = {"work": name, "system": program.name, "kind": program.kind,
                       "precision": program.precision}  # fmt: skip
                if not wanted(arguments, program, name) or (arguments.resume and results.has(row)):
                    continue
                try:
                    results.store(measure(name, Path(folder), arguments, ours, program))
                except Stopped as error:
                    stopped.append(str(error))
                    print(error, file=sys.stderr)
    print(f"written to {arguments.results}")
    if stopped:
        sys.exit("\n".join(["without a row, since a program stopped:", *stopped]))


if __name__ == "__main__":
    main()
