"""Which runs a server takes, and its endpoints, as ``dragoman.program`` names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dragoman.base.errors import RunError
from dragoman.runs.run import Run
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Endpoints, Service


class ServedTasks(NamedTuple):
    """All that a server does for runs of each task."""

    runs: tuple[type[ServedRun], ...]
    """What holds a run: the first that takes it."""
    endpoints: tuple[Callable[[Service], Endpoints], ...]
    """Where runs are asked, in the order in which the API describes it."""

    def open(self, run: Run, settings: ServeSettings, name: str) -> ServedRun:
        """Load a run for serving. Errors: ``RunError``, also for a run that is not served."""
        for kind in self.runs:
            if kind.takes(run):
                return kind.open(run, settings, name)
        if all(kind.task != run.task.name for kind in self.runs):
            raise RunError(
                f"{run.folder} is a {run.task.called}, which the server does not take; from the "
                f"command line: {run.use}"
            )
        raise RunError(
            f"{run.folder} reads {run.task.noun}, and the server takes texts; from the command "
            f"line: {run.use}"
        )
