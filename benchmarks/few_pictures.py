"""Accuracy by the number of training pictures, with and without convolutions before the encoder.

    python benchmarks/few_pictures.py cifar10 few-pictures
    python benchmarks/few_pictures.py cifar10 few-pictures --table

``cifar10`` has the folders ``train`` and ``test``, each with a folder of pictures for each label.
Of the training pictures the first n / labels of each label in an order that is drawn once are used,
so that fewer are a part of more. Both models have the same encoder, settings, updates and seeds;
what makes rows of patches is either a linear map, as in the Vision Transformer (Dosovitskiy et al.,
2021), or convolutions (``source.stem``). Each training is one run of ``dragoman train``; those that
are there already are not repeated. ``--table`` prints what there is.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

EPOCHS = {1_500: 50, 5_000: 25, 15_000: 12}
STEMS = ("linear", "convolutions")
BATCH = 128
PATCHES = 64
SETTINGS = {
    "source.height": 32, "source.width": 32, "source.patch": 4, "source.channels": 3,
    "model.model_dim": 64, "model.ffn_dim": 128, "model.layers": 4,
    "model.dropout": 0.1, "model.norm": "pre", "model.attention.num_heads": 4,
    "model.positions.kind": "learned", "model.positions.maximum": PATCHES,
    "plan.context": PATCHES, "plan.tokens_per_update": BATCH * PATCHES,
    "plan.tokens_per_micro_batch": BATCH * PATCHES,
    "training.clip_norm": 1.0, "training.label_smoothing": 0.1,
    "training.schedule.kind": "cosine", "training.schedule.peak": 1e-3,
    "training.picture_augment.flip": "true", "training.picture_augment.shift": 0.1,
    "training.picture_augment.erase": 0.2, "training.picture_augment.mixup": 0.2,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pictures", type=Path)
    parser.add_argument("to", type=Path)
    parser.add_argument("--numbers", type=int, nargs="+", default=sorted(EPOCHS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--table", action="store_true", help="train nothing")
    given = parser.parse_args()
    if not given.table:
        given.to.mkdir(parents=True, exist_ok=True)
        test = listed(given.pictures / "test", given.to / "test.tsv")
        for number, seed, stem in runs(given.numbers, given.seeds):
            train = listed(given.pictures / "train", given.to / f"train-{number}.tsv", number)
            learn(train, test, given.to / f"{stem}-{number}-{seed}", number, seed, stem)
    table(given.to, given.numbers, given.seeds)


def runs(numbers: list[int], seeds: list[int]) -> Iterator[tuple[int, int, str]]:
    """Each number and seed with both stems, one directly after the other."""
    for seed in seeds:
        for number in numbers:
            for stem in STEMS:
                yield number, seed, stem


def listed(folder: Path, to: Path, number: int | None = None) -> Path:
    """A list of files and labels, of ``number`` pictures; None: of all."""
    labels = sorted(one for one in folder.iterdir() if one.is_dir())
    lines = []
    for label in labels:
        files = sorted(label.iterdir())
        random.Random(label.name).shuffle(files)
        some = files if number is None else files[: number // len(labels)]
        lines += [f"{file.resolve()}\t{label.name}\n" for file in some]
    to.write_text("".join(lines), encoding="utf-8")
    return to


def learn(train: Path, test: Path, to: Path, number: int, seed: int, stem: str) -> None:
    if (to / "scores.json").exists():
        return
    updates = round(number * 0.9 * EPOCHS.get(number, 20) / BATCH)
    settings = SETTINGS | {
        "source.stem": stem, "training.updates": updates, "data.split.dev": 0.1,
        "training.schedule.warmup": updates // 10, "training.validate_every": updates // 4,
        "training.snapshot_every": max(1, updates // 40), "training.average_last": 5,
    }  # fmt: skip
    command = [sys.executable, "-m", "dragoman", "train", train, "--task", "classification"]
    command += ["--test", test, "--to", to, "--seed", seed]
    command += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    if subprocess.run([str(part) for part in command], check=False).returncode:
        raise SystemExit(f"{to}: the training ended with an error")


def table(folder: Path, numbers: list[int], seeds: list[int]) -> None:
    print("| pictures | " + " | ".join(STEMS) + " | difference |\n|---|---|---|---|")
    for number in numbers:
        found = [[accuracy(folder / f"{stem}-{number}-{seed}") for seed in seeds] for stem in STEMS]
        cells = [_mean([one for one in some if one is not None]) for some in found]
        both = [b - a for a, b in zip(*found, strict=True) if a is not None and b is not None]
        print(f"| {number:,} | {cells[0]} | {cells[1]} | {_mean(both)} |")


def accuracy(run: Path) -> float | None:
    try:
        report = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return float(report["scores"]["accuracy"]["value"])


def _mean(values: list[float]) -> str:
    if not values:
        return "-"
    each = ", ".join(f"{value:.1f}" for value in values)
    return f"{statistics.mean(values):.1f} ({each})"


if __name__ == "__main__":
    main()
