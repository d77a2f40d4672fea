"""A run of every task over every source. Not a test: tests import it."""

from __future__ import annotations

from pathlib import Path

from tiny_cells import MODELS, tiny_cell, told_cells
from trained_run import trained_run

from dragoman.data.files.corpora import read_pairs
from dragoman.runs.run import Run
from dragoman.tasks import program

_OF_THE_SHELL = ("translation", "picture")
"""A task and a source that the server does not take together."""
_SERVED = {kind.task for kind in program.serving_tasks().runs}
_SHORT = ("training.updates=2", "training.validate_every=2", "training.schedule.warmup=1")
CELLS = [
    (task, source, kind)
    for (task, source), kinds in told_cells().items()
    for kind in sorted(kinds & MODELS.keys(), key=lambda kind: (kind != "transformer", kind))
]
"""Task, source and kind of model of every run that can be asked something."""
SERVED_CELLS = [
    next(cell for cell in CELLS if cell[:2] == both)
    for both in dict.fromkeys((task, source) for task, source, _ in CELLS)
    if both[0] in _SERVED and both != _OF_THE_SHELL
]
"""One of each task and source that the server takes."""


def run_of_cell(task: str, source: str, kind: str, folder: Path) -> Path:
    """The folder of a run that has taken two updates; its data is written to ``folder``."""
    name = f"{task}-{source}"
    recipe = tiny_cell(task, kind, source, folder / name).change(_SHORT)
    return trained_run(recipe, folder / name / name).folder


def run_of_every_task(folder: Path) -> dict[str, Path]:
    """Those that are served, by their names: task-source."""
    return {f"{cell[0]}-{cell[1]}": run_of_cell(*cell, folder) for cell in SERVED_CELLS}


def given_of(run: Run) -> list[str]:
    """Three sources of the training that differ."""
    found: dict[str, None] = {}
    for pair in read_pairs(run.recipe.data.train[0]):
        text = (pair.source or pair.target).splitlines()[0]
        if run.task.name == "language-model":
            text = text[:12]
        if run.task.name == "masked":
            first, _, *rest = text.split()[:5]
            text = " ".join([first, "___", *rest])
        found[text] = None
    return list(found)[:3]
