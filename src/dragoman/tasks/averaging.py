"""The mean of the weights of a run's last snapshots, as one model (section 6.1 of the paper)."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from dragoman import catalogue
from dragoman.base.errors import RunError
from dragoman.runs.lock import locked
from dragoman.runs.run import WEIGHTS
from dragoman.training.checkpoint import Checkpoints
from dragoman.training.weights import average_weights, save_weights


def average_run(folder: Path, last: int, to: Path | None) -> tuple[Path, list[int]]:
    """Replace the weights of a run (or write ``to``) by the mean of its ``last`` snapshots.

    -> the file, and the updates whose weights went into it. Errors: ``RunError`` without any, if
    one is missing or damaged, or if the run's own weights are asked for while it is trained;
    ``FileError`` when the disk is full.
    """
    run = catalogue.Run.open(folder)
    with locked(folder) if to is None else nullcontext():
        checkpoints = Checkpoints(folder / "training")
        checkpoints.check_snapshots(last)
        snapshots = checkpoints.snapshots()[-last:]
        if not snapshots:
            raise RunError(
                f"{folder / 'training'} holds no snapshots to average; they are kept while "
                "training (training.keep_snapshots) and are gone if that folder was deleted"
            )
        updates = [update for update, _ in snapshots]
        path = to or run.folder / WEIGHTS
        weights = average_weights([file for _, file in snapshots])
        # "updates" tells the trainer that these were not measured, should the run go on.
        save_weights(path, weights, {"weights": "average", "updates": " ".join(map(str, updates))})
    return path, updates
