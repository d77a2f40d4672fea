"""What a demo shows for every seed and way of training: translations, pronouns and their hops.

    python benchmarks/demo_hops.py                     three seeds, every way that this machine has
    python benchmarks/demo_hops.py --ways avx2-fp32    one way: a set of kernels, and a precision

The demo is trained for each seed in each way. Heads are found with half of the pairs of probes,
the other half shows through them: the weight of "it" for the pronoun (as a multiple of what one
word has if all are looked at alike), that of the right noun and the deciding adjective from "it",
and how much more they get than the other noun. Medians and least values over the probes. The tests
of the demo ask for what is true of all of these rows.

Written to ``benchmarks/results/demo-hops.json``; docs/experiments.md shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from provenance import Watch
from results import Results

import dragoman
from dragoman import TranslatorSettings
from dragoman.demo.corpus import order_probes, pronoun_probes
from dragoman.insight.figures.run import find_heads, hops_of
from dragoman.native import loader
from dragoman.native.processor import no_bf16_units

RESULTS = Path(__file__).resolve().parent / "results" / "demo-hops.json"
SEEDS = (1, 2, 3)


def ways() -> list[str]:
    """Each set of kernels that trains here, and torch alone; bf16 where it is native."""
    found = [
        f"{level}-{precision}"
        for precision in ("fp32", "bf16")
        for level in dict.fromkeys(
            loader.training_level(one, precision) for one in loader.levels_offered()
        )
        if level is not None
    ]
    return [*found, "off-fp32"] + ["off-bf16"] * (no_bf16_units() is None)


def train(folder: Path, seed: int, way: str) -> None:
    kernels, precision = way.split("-")
    command = [sys.executable, "-m", "dragoman", "train", "demo", "--to", str(folder)]
    command += ["--set", f"seed={seed}", "--set", f"training.precision={precision}"]
    given = {"DRAGOMAN_NATIVE": kernels, "DRAGOMAN_MEASURE": "off"}
    subprocess.run(command, check=True, env=os.environ | given, stdout=subprocess.DEVNULL)


def shown(folder: Path) -> dict[str, Any]:
    """What the run does with the probes."""
    translator = dragoman.load(folder, TranslatorSettings(precision="fp32"))
    pairs = pronoun_probes()
    heads = find_heads(translator, [probe for pair in pairs[1::2] for probe in pair])
    first, second, rival = [], [], []
    probes = [probe for pair in pairs[::2] for probe in pair]
    for probe in probes:
        hops = hops_of(translator, probe, heads)
        first.append(hops.first[probe.it] * len(hops.source))
        there = hops.second[[probe.antecedent, probe.decider]].sum()
        second.append(there / 2 * len(hops.source))
        rival.append(there / hops.second[probe.rival])
    every = [probe for pair in pairs for probe in pair]
    pronouns = [
        probe.pronoun in found.text.replace(",", "").split()
        for probe, found in zip(every, translator.batch([p.source for p in every]), strict=True)
    ]
    orders = [probe for pair in order_probes() for probe in pair]
    found = translator.batch([probe.source for probe in orders])
    kept = [one.text == probe.reference for one, probe in zip(found, orders, strict=True)]
    clear = [a > 3 and b > 2 and c > 2 for a, b, c in zip(first, second, rival, strict=True)]
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["scores"]
    row: dict[str, Any] = {
        "BLEU": round(scores["BLEU"]["value"], 2),
        "pronouns": round(float(np.mean(pronouns)), 3),
        "orders": round(float(np.mean(kept)), 3),
        "heads": [str(heads.cross), *map(str, heads.encoder)],
        "probes": len(probes),
        "both_hops_clear": round(float(np.mean(clear)), 3),
    }
    for name, values in (("first", first), ("second", second), ("rival", rival)):
        row[name] = {
            "least": round(float(np.min(values)), 2),
            "median": round(float(np.median(values)), 2),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description="What a demo shows, by seed and way of training.")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--ways", nargs="+", default=None, help="such as avx512-fp32, off-bf16")
    parser.add_argument("--to", type=Path, default=RESULTS, help="the file of results")
    options = parser.parse_args()
    results = Results(options.to, ("way", "seed"))
    for seed in options.seeds:
        for way in options.ways or ways():
            row: dict[str, Any] = {"way": way, "seed": seed}
            if results.has(row):
                continue
            watch = Watch()
            with TemporaryDirectory() as temporary:
                folder = Path(temporary) / "demo"
                train(folder, seed, way)
                row |= shown(folder)
            print(row, flush=True)
            results.store(row | watch.stamp())


if __name__ == "__main__":
    main()
