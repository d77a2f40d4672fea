"""A run of every task over every source that it is served with. Not a test: tests import it."""

from __future__ import annotations

from pathlib import Path

from tiny_cells import tiny_cell, told_cells
from trained_run import trained_run

from dragoman import program

_OF_THE_SHELL = ("translation", "picture")
"""A task and a source that the server does not take together."""
_SERVED = {kind.task for kind in program.served().runs}
_SHORT = ("training.updates=2", "training.validate_every=2", "training.schedule.warmup=1")
SERVED_CELLS = [
    (task, source, min(kinds, key=lambda kind: (kind != "transformer", kind)))
    for (task, source), kinds in told_cells().items()
    if kinds and task in _SERVED and (task, source) != _OF_THE_SHELL
]
"""Task, source, and the kind of model that the run has."""


def run_of_every_task(folder: Path) -> dict[str, Path]:
    """Runs that have taken two updates each, by their names: task-source."""
    folders = {}
    for task, source, kind in SERVED_CELLS:
        name = f"{task}-{source}"
        recipe = tiny_cell(task, kind, source, folder / name).change(_SHORT)
        folders[name] = trained_run(recipe, folder / name / name).folder
    return folders
