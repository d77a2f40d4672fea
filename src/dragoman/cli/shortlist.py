"""``dragoman shortlist``: learn which target words a source can lead to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def shortlist(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    always: Annotated[
        int, typer.Option(min=1, help="So many frequent tokens, which every sentence may use.")
    ] = 256,
    per_token: Annotated[
        int, typer.Option(min=1, help="At most so many tokens for each source token.")
    ] = 64,
    least: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out what is less probable.")
    ] = 0.0003,
) -> None:
    """Learn the shortlist of a run from the text that it was trained on, in some seconds.

    With it, translate --shortlist scores some hundred words in place of the whole vocabulary.
    It is kept in the run and holds for the weights that the run has now.

    Example: dragoman shortlist runs/demo
    """
    from dragoman.cli.console import log_to_stderr
    from dragoman.inference.shortlist import ShortlistSettings
    from dragoman.runs.run import Run

    log_to_stderr()
    settings = ShortlistSettings(always=always, per_token=per_token, least=least)
    opened = Run.open(run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.translation.shortlist import learn_shortlist

    typer.echo(str(learn_shortlist(opened, settings)))
