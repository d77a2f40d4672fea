"""``dragoman ablate``: what each part of a model is worth, as in the paper's table 3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.cli.options import argument, arguments, option

if TYPE_CHECKING:
    from dragoman.studies.ablation import Ablation


@arguments
class AblateArguments:
    """What ``dragoman ablate`` takes."""

    recipe: str = argument("RECIPE")
    """A recipe: a .toml file, or the name of a recipe that comes with dragoman."""
    rows: str | None = None
    """Groups of rows or single rows, separated by commas. The groups are heads, key-width, layers,
    width, feed-forward, dropout, smoothing, positions, scaling, slices, warm-up, optimizer and
    norm; single rows have names such as heads-1 and positions-learned. Default: all. The unchanged
    recipe is always trained too."""
    seeds: str = "1,2,3"
    """The seeds, separated by commas. Each row is trained once with each seed."""
    minutes: float | None = option(ge=0.1)
    """The total time for all training runs. Each run gets the number of updates that fits into its
    share; the number is calculated once, for the unchanged recipe. Default: each run is as long as
    the recipe says."""
    to: Path | None = None
    """The folder to create. Default: runs/NAME-ablation."""
    set_: list[str] = option()
    """Change any setting for all rows. May be repeated."""
    keep: bool = False
    """Keep the run folders, not only their records."""
    list_: bool = False
    """List the rows of this recipe and stop."""


def ablate(args: AblateArguments) -> None:
    """Change one setting at a time and train: the paper's table 3 for a recipe of any size.

    The rows are scaled to the recipe. For example, the paper tries 1, 4, 16 and 32 heads instead of
    8, so a recipe with 4 heads gets rows with 1, 2, 8 and 16 heads. There are some rows that the
    paper does not have: index, normalised and binary positions; unscaled attention scores; no
    warm-up; the other optimizer; pre-norm; and heads that read slices of the input. All rows are
    trained with the same number of updates on the same data. The table shows the mean and the 95 %
    confidence interval over the seeds, the difference from the unchanged recipe, and the paper's
    figures; ablation.svg is a plot of the table. If a row is impossible for the recipe, the table
    gives the reason.

    An ablation takes --minutes in total (rows with larger models take more than their share).
    Without --minutes, each row takes as long, for each seed, as training the recipe once. The
    first example, with four rows and three seeds, takes less than twenty minutes on any machine.
    The demo recipe has 25 rows; with three seeds, they are 75 training runs.

    If the ablation is stopped or killed, run the same command again, or run dragoman resume on the
    folder, on this machine or another. You can add rows or seeds later.

    Examples:

      dragoman ablate demo --rows heads-1,positions-learned,smoothing-0 --minutes 16

      dragoman ablate demo --rows heads,positions --seeds 1,2,3,4,5

      dragoman ablate multi30k-en-de --list
    """
    from dragoman.cli.console import log_to_stderr, prepare_process, refuse_processes, say

    prepare_process()
    from dragoman.recipe import Recipe
    from dragoman.studies.ablation import begin_ablation
    from dragoman.studies.ablation_rows import chosen, rows_of
    from dragoman.studies.seeds import parse_seeds

    log_to_stderr()
    wanted = [name.strip() for name in args.rows.split(",") if name.strip()] if args.rows else []
    loaded = Recipe.load(args.recipe, args.set_)
    if args.list_:
        for row in chosen(rows_of(loaded), wanted):
            told = f"not possible: {row.cannot}" if row.cannot else row.what
            typer.echo(f"{row.part:<2}{row.name:<22}{told}")
        return
    refuse_processes("the rows of an ablation are")
    folder = args.to or Path("runs") / f"{loaded.name}-ablation"
    begun = begin_ablation(
        folder, loaded, wanted, parse_seeds(args.seeds),
        minutes=args.minutes, keep=args.keep, say=say,
    )  # fmt: skip
    go_on(begun)


def go_on(begun: Ablation) -> None:
    """Train what is missing, then say what all of it found."""
    from dragoman.cli.console import command, say
    from dragoman.studies.ablation_table import table, write
    from dragoman.studies.several import train_all

    folder = begun.folder
    again = command("resume", folder)
    whole = train_all(folder, begun.trainings, say=say, again=again, keep=begun.plan.keep)
    if not whole:
        raise typer.Exit(130)
    files = write(begun)
    typer.echo(f"\n{table(begun)}\n\n{', '.join(map(str, files))}")
