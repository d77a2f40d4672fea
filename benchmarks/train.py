"""Training speed beside other programs: same weights, same batches.

    python benchmarks/train.py                              random sentences, speed alone
    python benchmarks/train.py --source train.en --target train.de --updates 400
                                                            real text: losses mean something too
    python benchmarks/train.py --only joeynmt               one toolkit, also at train-d512
    python benchmarks/train.py --device cuda                base and big, on a GPU

Every system starts from the same weights and sees the same updates in the same order, at the same
learning rates; each runs in a process (and an environment) of its own, in turns of a few updates,
so that a busy machine slows all of them alike. Tokens are real target tokens, end symbols counted.
Kinds: ours; shipped (a plain loop, or a toolkit's own step); tuned (glibc told to keep memory,
eager attention, fused Adam). Results go to ``benchmarks/results/train.json``, rows of the same work
and system replacing older ones. The last line of a work gives the share of the machine's bf16
matrix rate, measured in the same run on the products of that model.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from training.systems import System, systems, toolkits
from translate import lines_of, machine, store

from dragoman.forms.text import Text, TextSettings
from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer import Transformer
from dragoman.nn.positions import sinusoidal

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "train.json"
CORES = len(os.sched_getaffinity(0))

WORKS: dict[str, dict[str, Any]] = {
    "train-d256": {
        "model": {"model_dim": 256, "ffn_dim": 1024, "encoder_layers": 3, "decoder_layers": 3},
        "vocabulary": 8000, "peak": 2e-3, "warmup": 1000,
    },
    "train-d512": {
        "model": {"model_dim": 512, "ffn_dim": 2048, "encoder_layers": 6, "decoder_layers": 6},
        "vocabulary": 32000, "peak": 7e-4, "warmup": 4000,
    },
    "train-base": {
        "model": {"model_dim": 512, "ffn_dim": 2048, "encoder_layers": 6, "decoder_layers": 6},
        "vocabulary": 37000, "peak": 7e-4, "warmup": 4000, "tokens": 25_000,
    },
    "train-big": {
        "model": {"model_dim": 1024, "ffn_dim": 4096, "encoder_layers": 6, "decoder_layers": 6,
                  "attention": {"num_heads": 16}},
        "vocabulary": 37000, "peak": 5e-4, "warmup": 4000, "tokens": 25_000,
    },
}  # fmt: skip

OF_DEVICE = {"cpu": ("train-d256", "train-d512"), "cuda": ("train-base", "train-big")}
"""What is measured unless ``--work`` says otherwise: the paper's own sizes where there is a GPU."""

Pair = tuple[list[int], list[int]]


def pairs_of_text(source: Path, target: Path, vocabulary: int) -> list[Pair]:
    """Two files of lines -> token ids, by one vocabulary trained on both."""
    texts = [lines_of(source), lines_of(target)]
    form = Text.train([*texts[0], *texts[1]], TextSettings(vocabulary=vocabulary), seed=1)
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


def batches(pairs: list[Pair], tokens: int, draw: random.Random) -> list[list[list[list[int]]]]:
    """Updates of at most ``tokens`` target tokens, sentences of like length together, shuffled."""
    pairs = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]), draw.random()))
    made: list[list[list[list[int]]]] = []
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


def write_work(
    folder: Path, arguments: argparse.Namespace, work: dict[str, Any], seed: int
) -> None:
    """What every system reads: model, weights, updates, sentences held out."""
    settings = TransformerSettings.model_validate(work["model"] | {"dropout": arguments.dropout})
    torch.manual_seed(seed)
    model = Transformer(settings, work["vocabulary"], work["vocabulary"])
    arrays = {name: value.numpy() for name, value in model.state_dict().items()}
    arrays["positions"] = sinusoidal(torch.arange(512), settings.model_dim).float().numpy()
    np.savez(folder / "weights.npz", **arrays)
    if arguments.source:
        pairs = pairs_of_text(arguments.source, arguments.target, work["vocabulary"])
    else:
        pairs = random_pairs(30_000, work["vocabulary"])
    draw = random.Random(seed)
    draw.shuffle(pairs)
    held_out, rest = pairs[:500], pairs[500:]
    updates: list[Any] = []
    tokens = arguments.tokens or work.get("tokens", 4096)
    while len(updates) < arguments.updates + arguments.warm_up:
        updates += batches(rest, tokens, draw)
    plan = {
        "model": json.loads(settings.model_dump_json()), "vocabulary": work["vocabulary"],
        "peak": work["peak"], "warmup": work["warmup"], "smoothing": 0.1, "clip_norm": 1.0,
        "seed": seed, "threads": CORES, "device": arguments.device,
    }  # fmt: skip
    for name, content in (
        ("plan", plan),
        ("updates", updates[: arguments.updates + arguments.warm_up]),
        (
            "held_out",
            batches(held_out, tokens, draw) or [list(zip(*held_out, strict=True))],
        ),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def measure(
    name: str,
    folder: Path,
    work: dict[str, Any],
    arguments: argparse.Namespace,
    all_of: list[System],
) -> list[dict[str, Any]]:
    """Train all systems in turns -> rows of the results file."""
    try:
        for system in all_of:
            system.take_turn(arguments.warm_up, count=False)
        rates = []
        for _ in range(0, arguments.updates, arguments.turn):
            for system in all_of:
                system.take_turn(arguments.turn, count=True)
            rates.append(matrix_rate(work, arguments.device))
        for system in all_of:
            system.held_out = system.ask({"look": True})["held_out_nll"]
    finally:
        for system in all_of:
            system.process.kill()
            system.process.wait()
    rows = [row_of(system, name, all_of) for system in all_of]
    average = json.loads((folder / "updates.json").read_text(encoding="utf-8"))
    operations = statistics.mean(operations_per_token(work, *update) for update in average[:20])
    rate = statistics.median(rates)
    for row in rows:
        share = row["median"] * operations / rate
        row["share_of_bf16_matrix_rate"] = round(share, 3)
        print(f"  {row['system']:24} {row['kind']:8} {row['precision']}  {share:.0%} of the rate")
    print(f"  bf16 matrix rate {rate / 1e9:.0f} GFLOP/s; {operations / 1e6:.1f} MFLOP per token")
    return rows


def row_of(system: System, work: str, all_of: list[System]) -> dict[str, Any]:
    """What was found of one system; printed too."""
    ours = next((s for s in all_of if s.kind == "ours"), system)
    ratios = [a / b for a, b in zip(ours.rates, system.rates, strict=True)]
    row = {
        "work": work, "system": system.name, "version": system.version, "kind": system.kind,
        "precision": system.precision, "vocabulary": "full", "measure": "speed",
        "unit": "target tokens/s", "median": round(statistics.median(system.rates)),
        "runs": [round(rate) for rate in system.rates], "bleu": None,
        "memory_mb": round(system.memory_mb), "updates": len(system.losses),
        "train_loss": round(statistics.mean(system.losses[-20:]), 4),
        "held_out_nll": round(system.held_out, 4),
        "first_is_faster_by": round(statistics.median(ratios), 2),
    }  # fmt: skip
    print(
        f"{work} {system.name:24} {system.kind:8} {system.precision} {row['median']:7} tokens/s "
        f"({row['first_is_faster_by']} x slower than {ours.name} {ours.precision})  "
        f"{row['memory_mb']} MB  loss {row['train_loss']}, nll held out {row['held_out_nll']}",
        flush=True,
    )
    return row


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


def matrix_rate(work: dict[str, Any], device: str) -> float:
    """Operations per second of torch's bf16 product on this model's largest shapes."""
    import time

    rows = work.get("tokens", 4096)
    torch.set_num_threads(CORES)
    width, hidden = work["model"]["model_dim"], work["model"]["ffn_dim"]
    done, seconds = 0.0, 0.0
    for inputs, outputs in ((width, width), (width, hidden), (hidden, width)):
        x = torch.randn(rows, inputs, device=device).bfloat16()
        weight = torch.randn(outputs, inputs, device=device).bfloat16()
        out = torch.empty(rows, outputs, dtype=torch.bfloat16, device=device)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            torch.mm(x, weight.t(), out=out)
            if device != "cpu":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        done += 2.0 * rows * inputs * outputs
        seconds += min(times)
    return done / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=OF_DEVICE, default="cpu")
    parser.add_argument("--work", choices=WORKS, action="append", help="default: the device's")
    parser.add_argument("--source", type=Path, help="lines to learn from (.gz too)")
    parser.add_argument("--target", type=Path, help="their translations")
    parser.add_argument("--tokens", type=int, help="target tokens per update (4,096; GPU 25,000)")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=2, help="updates before the clock runs")
    parser.add_argument("--turn", type=int, default=2, help="updates of one system at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="parts of name:kind:precision, e.g. ours :bf16")
    parser.add_argument("--peer-python", type=Path, help="an environment that is there")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if (arguments.source is None) != (arguments.target is None):
        parser.error("--source and --target go together")
    print(machine())
    for name in arguments.work or OF_DEVICE[arguments.device]:
        with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as folder:
            where, work = Path(folder), WORKS[name]
            write_work(where, arguments, work, arguments.seed)
            if found := systems(arguments, where):
                store(arguments.results, measure(name, where, work, arguments, found))
            # Behind the others, since all at once would need more memory than many machines have.
            if found := toolkits(arguments, where, name):
                store(arguments.results, measure(name, where, work, arguments, found)[1:])
    print(f"written to {arguments.results}")


if __name__ == "__main__":
    main()
