"""``dragoman shortlist``: which target words a source can lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dragoman.cli.console import log_to_stderr
from dragoman.cli.options import RunFolder, argument, arguments, setting, values_of

if TYPE_CHECKING:
    from dragoman.models.shortlist import ShortlistSettings


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
