"""Runs of one recipe that differ only by their seed; they show the influence of chance.

runs/x/seeds.json    the seeds to train with
runs/x/seed-1        the first run; all others take its number of updates
runs/x/seed-2        …
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated

from pydantic import Field

from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError, RunError
from dragoman.base.task import ModelPart
from dragoman.base.wording import plural
from dragoman.runs.files import read_stored
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import RECIPE, Run, refuse_run
from dragoman.studies.records import Stored
from dragoman.tasks import catalogue

SEEDS = "seeds.json"


class Seeds(Stored):
    """The plan of a group of runs that differ only by their seed (``seeds.json``)."""

    seeds: list[Annotated[int, Field(ge=0, lt=2**63)]] = Field(min_length=1, max_length=1000)
    start_from: str | None = None
    """The run that all of them fine-tune."""
    take: ModelPart | None = None
    """The only part that they take from that run; None: all of it."""


def runs_of(folder: Path) -> list[Run]:
    """Open the run in a folder, or all runs that the folder contains, sorted by seed.

    Errors: ``RunError`` if there is none.
    """
    if (folder / RECIPE).is_file() or not folder.is_dir():
        return [catalogue.Run.open(folder)]
    runs = [catalogue.Run.open(path.parent) for path in sorted(folder.glob(f"*/{RECIPE}"))]
    if not runs:
        raise RunError(f"{folder} is neither a run nor a folder of runs: it has no {RECIPE}")
    return sorted(runs, key=lambda run: run.recipe.seed)


def parse_seeds(text: str) -> list[int]:
    """ "1,2,3" -> the seeds. Errors: ``DragomanError``."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) < 2**63 for part in parts):
        raise DragomanError(f"--seeds {text}: write numbers separated by commas, such as 1,2,3")
    seeds = [int(part) for part in parts]
    if len(set(seeds)) < len(seeds):
        raise DragomanError(f"--seeds {text}: a seed is listed twice. List each seed once")
    return seeds


def seeds_in(folder: Path) -> Seeds | None:
    """Read the plan that ``begin_seeds`` wrote; None if the folder has no such file.

    Errors: ``RunError`` for a file that is damaged.
    """
    path = folder / SEEDS
    return read_stored(path, Seeds) if path.is_file() else None


def begin_seeds(folder: Path, seeds: Seeds) -> None:
    """Make a folder for runs of these seeds. Errors: ``RunError`` if it already contains runs."""
    refuse_run(folder)
    if list(folder.glob(f"*/{RECIPE}")):
        raise RunError(
            f"{folder} already contains runs. Resume them with dragoman resume {folder}, or set "
            "another folder: --to FOLDER"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / SEEDS, seeds.model_dump_json(exclude_none=True) + "\n")


def seed_folder(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}"


def recipe_of_next(folder: Path, seeds: Seeds, seed: int) -> Recipe:
    """The recipe of the first run with another seed, and its number of updates even if they were
    derived from a time. Errors: ``RunError`` if there is no first run yet."""
    first = seed_folder(folder, seeds.seeds[0])
    if not (first / RECIPE).is_file():
        raise RunError(f"{first} was not started. Repeat the dragoman train command of {folder}")
    return catalogue.Run.open(first).recipe.change([f"seed={seed}", "training.minutes=0"])


def last_update(folder: Path) -> int:
    """The last update in the log of a run; 0 if the run was not begun."""
    if not (folder / RECIPE).is_file():
        return 0
    return catalogue.Run.open(folder).last_update


def summary(folder: Path) -> str:
    """The scores of a group as text: mean, standard deviation, and the score of each run."""
    runs = runs_of(folder)
    files = [run.scores() for run in runs]
    scores = [file.get("scores", {}) for file in files]
    names = [name for name in scores[0] if all(name in by_name for by_name in scores)]
    alike = [
        name
        for name in names
        if len({(f.get("test"), s[name]["signature"]) for f, s in zip(files, scores, strict=True)})
        == 1
    ]
    seeds = ", ".join(str(run.recipe.seed) for run in runs)
    lines = [f"{plural(len(runs), 'run')} in {folder}, seeds {seeds}"]
    if alike != names:
        unlike = ", ".join(runs[0].task.measure(name).called for name in names if name not in alike)
        lines.append(
            f"{unlike}: some of the runs were measured on other texts or in another way, so there "
            "is no mean. Measure each run again: dragoman evaluate RUN"
        )
    wide = max((len(runs[0].task.measure(name).called) for name in alike), default=0)
    for name in alike:
        measure, values = runs[0].task.measure(name), [by_name[name]["value"] for by_name in scores]
        deviation = f" sd {measure.number(stdev(values))}" if len(values) > 1 else ""
        each = ", ".join(map(measure.number, values))
        mean = measure.text(fmean(values))
        lines.append(f"{measure.called:<{wide}}  {mean:>7}{deviation}  ({each})")
    return "\n".join(lines)
