"""What a user feels: BLEU after so many minutes, beside a tuned Marian loop given the same minutes.

    dragoman train multi30k-en-de --seed 1 --set training.keep_snapshots=24
    python benchmarks/minutes.py --run runs/multi30k-en-de

``dragoman train`` has left its snapshots in the run, and when each was written. The peer starts
from fresh weights of the same sizes, with the same vocabulary, tokens per update, schedule, dropout
and smoothing, and is looked at after 2, 4, … minutes of training. Either side's weights then
translate the run's test set as ``dragoman evaluate`` does. Neither averages. Minutes of translating
do not count; those of our validations do. Ours carries the provenance of looking at its snapshots:
under what it was trained says the run's own report. Results go to
``benchmarks/results/minutes.json``, each point as soon as it is there.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from provenance import Watch
from results import Results
from safetensors.torch import load_file, save_file
from train import batches
from training.systems import System, precisions, programs
from translate import bleu

import dragoman
from dragoman.data.cleaning import Cleaner
from dragoman.engine.machine import cores
from dragoman.nn.positions import sinusoidal
from dragoman.runs.corpora import plain_pairs, training_pairs
from dragoman.runs.model import build_model
from dragoman.runs.run import Run

RESULTS = Path(__file__).resolve().parent / "results" / "minutes.json"
UPDATES_AT_ONCE = 10
PEER = "hugging-face-marian"

Point = dict[str, float]


class Judge:
    """BLEU of weights on the run's test set."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.folder = folder / "judged"
        self.folder.mkdir()
        for name in ("recipe.toml", "shared.model"):
            shutil.copy(run.folder / name, self.folder)
        self.metadata = run.folder / "model.safetensors"
        pairs = plain_pairs(run.recipe, "test")
        self.sources = [pair.source for pair in pairs]
        self.references = [pair.target for pair in pairs]

    def bleu(self, weights: dict[str, torch.Tensor]) -> float:
        names = load_file(self.metadata)
        save_file({name: weights[name] for name in names}, self.folder / "model.safetensors")
        outputs = dragoman.load(self.folder).batch(self.sources)
        return bleu([str(output) for output in outputs], self.references)


def of_snapshots(run: Run, folder: Path, judge: Judge) -> Iterator[Point]:
    """Minutes and BLEU of each snapshot that ``dragoman train`` has left."""
    elapsed = {}
    for line in (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["kind"] == "update":
            elapsed[record["update"]] = record["elapsed"]
    for path in sorted(folder.glob("*.safetensors")):
        minutes, updates = round(elapsed[int(path.stem)] / 60, 2), int(path.stem)
        yield {"minutes": minutes, "updates": updates, "bleu": judge.bleu(load_file(path))}


def write_work(run: Run, folder: Path, seed: int, updates: int) -> None:
    """What the peer reads: the run's recipe, its text in tokens, and fresh weights."""
    recipe = run.recipe
    torch.manual_seed(seed)
    model = build_model(recipe, run.source_text, run.target_text)
    arrays = {name: value.numpy() for name, value in model.state_dict().items()}
    arrays["positions"] = sinusoidal(torch.arange(512), recipe.model.model_dim).float().numpy()
    np.savez(folder / "weights.npz", **arrays)
    pairs = list(training_pairs(recipe, Cleaner(recipe.data.cleaning)))
    ids = [
        [line.tolist() for line in text.encode(lines)]
        for text, lines in (
            (run.source_text, [pair.source for pair in pairs]),
            (run.target_text, [pair.target for pair in pairs]),
        )
    ]
    draw = random.Random(seed)
    both = [(s, t) for s, t in zip(*ids, strict=True) if s and t]
    made: list[Any] = []
    while len(made) < updates:
        made += batches(both, recipe.plan.tokens_per_update, draw)
    schedule = recipe.training.schedule
    plan = {
        "model": json.loads(recipe.model.model_dump_json()),
        "vocabulary": len(arrays["source_embedding.weight"]),
        "peak": schedule.peak, "warmup": schedule.warmup, "clip_norm": recipe.training.clip_norm,
        "smoothing": recipe.training.label_smoothing, "seed": seed, "threads": cores(),
        "device": "cpu",
    }  # fmt: skip
    for name, content in (("plan", plan), ("updates", made), ("held_out", made[:1])):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def of_peer(
    system: System, judge: Judge, folder: Path, minutes: float, every: float
) -> Iterator[Point]:
    """Train it for so many minutes: minutes and BLEU every so often."""
    seconds, updates, mark = 0.0, 0, every
    while mark <= minutes + 1e-6:
        while seconds < 60 * mark:
            answer = system.ask({"updates": UPDATES_AT_ONCE})
            seconds += sum(answer["seconds"])
            updates += UPDATES_AT_ONCE
        path = folder / "peer.npz"
        system.ask({"save": str(path)})
        weights = {name: torch.from_numpy(value) for name, value in np.load(path).items()}
        minute = round(seconds / 60, 2)
        yield {"minutes": minute, "updates": updates, "bleu": judge.bleu(weights)}
        mark += every


def keep(results: Results, run: Run, name: str, points: Iterable[Point]) -> None:
    """Write one system's points, each as soon as it is there."""
    watch, found = Watch(), []
    for point in points:
        print(name, point, flush=True)
        found.append(point)
        head = {"recipe": run.recipe.name, "system": name, "points": found}
        results.store(head | watch.stamp())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", type=Path, required=True, help="trained, with its snapshots")
    parser.add_argument("--snapshots", type=Path, help="if they lie elsewhere")
    parser.add_argument("--minutes", type=float, default=16.0, help="of the peer")
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--precision", default=precisions("cpu")[0], choices=["bf16", "fp32"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peer-python", type=Path, help="an environment that is there")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    run, results = Run.open(arguments.run), Results(arguments.results, ("recipe", "system"))
    wanted = f"{PEER}:tuned:{arguments.precision}"
    asked = argparse.Namespace(device="cpu", peer_python=arguments.peer_python)
    (program,) = [program for program in programs(asked) if program.label == wanted]
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as name:
        folder = Path(name)
        judge = Judge(run, folder)
        snapshots = arguments.snapshots or run.folder / "training" / "snapshots"
        keep(results, run, "dragoman", of_snapshots(run, snapshots, judge))
        write_work(run, folder, arguments.seed, updates=int(60 * arguments.minutes * 8))
        peer = program.start(folder)
        try:
            of_it = of_peer(peer, judge, folder, arguments.minutes, arguments.every)
            keep(results, run, PEER, of_it)
        finally:
            peer.end()
    print(f"written to {arguments.results}")


if __name__ == "__main__":
    main()
