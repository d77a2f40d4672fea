"""``dragoman shortlist``: learn which target words a source can lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dragoman.cli.options import RunFolder, argument, arguments, setting, values_of

if TYPE_CHECKING:
    from dragoman.inference.shortlist import ShortlistSettings


def shortlist_settings() -> type[ShortlistSettings]:
    """How long a shortlist is."""
    from dragoman.inference.shortlist import ShortlistSettings

    return ShortlistSettings


@arguments
class ShortlistArguments:
    """What ``dragoman shortlist`` takes."""

    run: RunFolder = argument("RUN")
    always: int = setting(shortlist_settings)
    per_token: int = setting(shortlist_settings)
    least: float = setting(shortlist_settings)


def shortlist(args: ShortlistArguments) -> None:
    """Learn the shortlist of a run from the text that it was trained on, in some seconds.

    translate --shortlist then scores some hundred words instead of the whole vocabulary. The
    shortlist is kept in the run and is valid for the weights that the run has now.

    Example: dragoman shortlist runs/demo
    """
    from dragoman.cli.console import log_to_stderr
    from dragoman.runs.run import Run

    log_to_stderr()
    settings = shortlist_settings()(**values_of(args, shortlist_settings))
    opened = Run.open(args.run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.translation.shortlist import learn_shortlist

    typer.echo(str(learn_shortlist(opened, settings)))
