"""How many labels a classifier needs, from nothing and from models that have read without labels.

    python benchmarks/sentence_sources.py data/mono-en/{abc,brown,lj,movie,state}*.txt.gz \\
        --to data/sentence-sources
    TEXT=data/sentence-sources/train.txt
    SIZE="--set model.model_dim=128 --set model.ffn_dim=512 --set model.attention.num_heads=4
      --set model.layers=3"
    dragoman train $TEXT --task language-model --to runs/left-long $SIZE \\
      --set training.updates=6600 --set plan.tokens_per_update=2048 \\
      --set plan.tokens_per_micro_batch=2048
    dragoman train $TEXT --task masked --to runs/masked-long $SIZE \\
      --set training.updates=27000 --set training.schedule.warmup=500
    python benchmarks/labels.py data/sentence-sources --from runs/left-long \\
      --from runs/masked-long --ulmfit runs/left-long

For each number of labels (100, 1,000, all) a classifier is trained from nothing and from each run,
with three seeds and equal updates for every start (``PLAN``); then accuracy and macro F1 on the
test set, the mean and standard deviation over the seeds, and how sure the difference from nothing
is (``dragoman compare``, paired bootstrap). From nothing the network is of the first run's size.
``--ulmfit RUN`` begins from a run by ULMFiT's rules: layers learn at falling rates and thaw one by
one. A group of runs that stands already is not trained again, so it goes on after a stop.
Written to ``benchmarks/results/labels.json``, and by tables.py into README.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provenance import Watch
from results import Results

from dragoman.metrics.significance import SIGNIFICANT
from dragoman.runs.run import SCORES
from dragoman.sizing.options import TrainOptions
from dragoman.studies.comparison import compare_runs
from dragoman.studies.seeds import parse_seeds, seed_folder
from dragoman.studies.systems import ComparisonRequest
from dragoman.tasks.catalogue import Run
from dragoman.tasks.from_files import recipe_of

RESULTS = Path(__file__).resolve().parent / "results" / "labels.json"
PLAN = {"100": (200, 1024), "1000": (500, 2048), "all": (600, 4096)}
"""Of so many labels: updates, and tokens of each."""
SIZES = ("model_dim", "ffn_dim", "layers", "dropout")


@dataclass(frozen=True)
class Start:
    """What a classifier begins with."""

    name: str
    run: Path | None = None
    ulmfit: bool = False

    def options(self, updates: int) -> list[str]:
        """Of ``dragoman train``."""
        words = ["--from", str(self.run)] if self.run else []
        if self.ulmfit:
            # Eight layers have thawed after half of the updates, three after less than a quarter.
            words += ["--set", "training.layers.decay=0.385"]
            words += ["--set", f"training.layers.thaw={max(1, updates // 16)}"]
        return words


def starts(runs: Sequence[Path], ulmfit: Sequence[Path]) -> list[Start]:
    """Nothing, each run, and some by ULMFiT's rules."""
    return [
        Start("nothing"),
        *(Start(run.name, run) for run in runs),
        *(Start(f"{run.name}-ulmfit", run, ulmfit=True) for run in ulmfit),
    ]


def train(
    data: Path, count: str, start: Start, seeds: str, updates: int, like: Path, to: Path
) -> None:
    """The runs of one start, a folder for each seed; those that stand finished are left.

    ``like``: a run whose sizes a network from nothing has.
    """
    if all((seed_folder(to, seed) / SCORES).exists() for seed in parse_seeds(seeds)):
        return
    if to.exists():
        words = ["resume", str(to)]
    else:
        name = "train.tsv" if count == "all" else f"train-{count}.tsv"
        options = TrainOptions(
            inputs=[str(data / name)], task="classification", columns="text,label", languages="en",
            dev=(str(data / "dev.tsv"), ""), test=(str(data / "test.tsv"), ""),
        )  # fmt: skip
        recipe = recipe_of(options, learns=False).recipe
        recipe_file = to.parent / f"{to.name}.toml"
        to.parent.mkdir(parents=True, exist_ok=True)
        recipe.save(recipe_file)
        settings = [
            f"training.updates={updates}",
            f"training.validate_every={max(1, updates // 5)}",
            f"training.schedule.warmup={max(1, updates // 10)}",
            f"plan.tokens_per_update={PLAN[count][1]}",
            f"plan.tokens_per_micro_batch={min(4096, PLAN[count][1])}",
            "plan.context=96",
        ]
        words = ["train", str(recipe_file), "--seeds", seeds, "--to", str(to)]
        words += start.options(updates)
        if start.run is None:
            sizes = Run.open(like).recipe.model
            settings += [f"model.{name}={getattr(sizes, name)}" for name in SIZES]
            settings.append(f"model.attention.num_heads={sizes.attention.num_heads}")
        words += [word for setting in settings for word in ("--set", setting)]
    subprocess.run([sys.executable, "-m", "dragoman", *words], check=True)


def significant(score: dict[str, Any]) -> str:
    """A star where it differs from the first start."""
    return "*" if score["p_value"] is not None and score["p_value"] < SIGNIFICANT else " "


def table(row: dict[str, Any]) -> str:
    """One number of labels: a line for each start."""
    lines = [f"{row['labels']} labels, {row['updates']:,} updates of {row['tokens']:,} tokens"]
    lines.append(f"{'from':<24} {'accuracy':>16} {'macro F1':>16}")
    for start in row["starts"]:
        cells = " ".join(
            f"{one['value']:8.2f} sd {one['deviation'] or 0:5.2f}{significant(one)}"
            for one in (start["accuracy"], start["macro F1"])
        )
        lines.append(f"{start['from']:<24} {cells}")
    return "\n".join(lines)


def measured(groups: Sequence[tuple[Start, Path]]) -> list[dict[str, Any]]:
    """Of each start the mean over its seeds, its deviation, and p of the difference from the first,
    on the test set of the recipes."""
    metrics = compare_runs(ComparisonRequest([to for _, to in groups])).to_dict()["metrics"]
    rows = []
    for place, (start, _) in enumerate(groups):
        row: dict[str, Any] = {"from": start.name}
        for name, found in metrics.items():
            score = found["systems"][place]
            row[name] = {key: score[key] for key in ("value", "deviation", "p_value")}
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder that sentence_sources.py has written")
    parser.add_argument("--from", dest="runs", type=Path, action="append",
                        required=True, help="a run that has read; may be given again")  # fmt: skip
    parser.add_argument("--ulmfit", type=Path, action="append", default=[],
                        help="begin from this run by ULMFiT's rules too")  # fmt: skip
    parser.add_argument("--counts", nargs="+", choices=PLAN, default=list(PLAN))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--updates", type=int, help="in place of PLAN's, to try it out")
    parser.add_argument("--to", type=Path, default=Path("runs/labels"), help="folder of the runs")
    given = parser.parse_args()
    results = Results(RESULTS, ("labels",))
    for count in given.counts:
        watch = Watch()
        updates = given.updates or PLAN[count][0]
        groups = []
        for start in starts(given.runs, given.ulmfit):
            to = given.to / f"{start.name}-{count}"
            train(given.data, count, start, given.seeds, updates, given.runs[0], to)
            groups.append((start, to))
        row = {"labels": count, "updates": updates, "tokens": PLAN[count][1],
               "starts": measured(groups)}  # fmt: skip
        print(table(row), flush=True)
        results.store(row | watch.stamp())


if __name__ == "__main__":
    main()
