"""``dragoman average``: one model from several snapshots of a training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def average(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    last: Annotated[int, typer.Option(min=1, help="How many of the last snapshots.")] = 10,
    to: Annotated[
        Path | None, typer.Option(help="Write to this file; the run's own weights if not given.")
    ] = None,
) -> None:
    """Average the weights of the last snapshots (paper, section 6.1).

    The run's weights are replaced, in one step, by their mean; the snapshots stay where they are.
    """
    from dragoman.cli.console import program
    from dragoman.runs.run import Run

    Run.open(run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.averaging import average_run

    path, used = average_run(run, last, to)
    typer.echo(f"{path} now holds the mean of updates {', '.join(f'{u:,}' for u in used)}")
    if to is None:
        typer.echo(f"How good it is: {program()} evaluate {run}")
