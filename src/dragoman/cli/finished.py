"""``dragoman average``: one model from several snapshots of a training."""

from __future__ import annotations

from pathlib import Path

import typer

from dragoman.cli.console import program
from dragoman.cli.options import RunFolder, argument, arguments, option


@arguments
class AverageArguments:
    """What ``dragoman average`` takes."""

    run: RunFolder = argument("RUN")
    last: int = option(10, ge=1)
    """The number of snapshots to average, counted back from the last."""
    to: Path | None = None
    """Write the averaged weights to this file. Default: replace the run's weights."""


def average(args: AverageArguments) -> None:
    """Average the weights of the last snapshots (paper, section 6.1).

    The mean replaces the run's weights atomically. The snapshots are kept.
    """
    from dragoman import catalogue

    catalogue.Run.open(args.run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.averaging import average_run

    path, used = average_run(args.run, args.last, args.to)
    typer.echo(f"{path} now holds the mean of updates {', '.join(f'{u:,}' for u in used)}")
    if args.to is None:
        typer.echo(f"How good it is: {program()} evaluate {args.run}")
