"""What is made of a finished training: ``dragoman average``, one model from several snapshots, and
``dragoman shortlist``, which target words a source can lead to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.cli.console import log_to_stderr, program
from dragoman.cli.options import RunFolder, argument, arguments, option, setting, values_of

if TYPE_CHECKING:
    from dragoman.models.shortlist import ShortlistSettings


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


def shortlist_settings() -> type[ShortlistSettings]:
    """How long a shortlist is."""
    from dragoman.models.shortlist import ShortlistSettings

    return ShortlistSettings


@arguments
class ShortlistArguments:
    """What ``dragoman shortlist`` takes."""

    run: RunFolder = argument("RUN")
    always: int = setting(shortlist_settings)
    per_token: int = setting(shortlist_settings)
    least: float = setting(shortlist_settings)


def shortlist(args: ShortlistArguments) -> None:
    """Learn a vocabulary shortlist from the text that a run was trained on; takes some seconds.

    With a shortlist, translate --shortlist scores a few hundred words instead of the whole
    vocabulary. The shortlist is saved in the run folder and is valid only for the run's current
    weights.

    Example: dragoman shortlist runs/demo
    """
    from dragoman import catalogue

    log_to_stderr()
    settings = shortlist_settings()(**values_of(args, shortlist_settings))
    opened = catalogue.Run.open(args.run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.translation.shortlist import learn_shortlist

    typer.echo(str(learn_shortlist(opened, settings)))
