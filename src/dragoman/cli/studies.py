"""``dragoman sweep`` searches the learning rate and the dropout that suit a recipe. ``dragoman
ablate`` measures the effect of each part of a model, as in the paper's table 3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.console.options import argument, arguments, option
from dragoman.console.output import command, prepare_process, refuse_processes, say

if TYPE_CHECKING:
    from dragoman.studies.ablation import Ablation
    from dragoman.studies.sweep import Sweep


@arguments
class SweepArguments:
    """The arguments and options of ``dragoman sweep``."""

    recipe: str = argument("RECIPE")
    """A recipe: a .toml file, or the name of a recipe that comes with dragoman."""
    search_space: list[str] = option()
    """A setting and the values to try: key=LOW..HIGH, key=LOW..HIGH:log (uniform on a logarithmic
    scale), or key=A,B,C. If both ends of a range are integers, the values are integers. May be
    repeated."""
    trials: int = option(8, ge=2, le=10_000)
    """The number of trials. The first one is the unchanged recipe."""
    minutes: float | None = option(ge=0.1)
    """The total time for all trials. Each trial gets the number of updates that fits into its
    share; the number is calculated once from the speed of this machine. Default: each trial is as
    long as the recipe says."""
    seed: int = option(1, ge=0)
    """The seed of the search, which determines the trials."""
    to: Path | None = None
    """The folder to create. Default: runs/NAME-sweep."""
    set_: list[str] = option()
    """Change any setting for all trials, such as plan.tokens_per_update=2048. May be repeated."""
    keep: bool = False
    """Keep the run folder of each trial, not only its record."""


def sweep(args: SweepArguments) -> None:
    """Search randomly for good settings: run trials of equal cost, and write the best recipe.

    Without --search-space, the search varies the learning rate (from a quarter of the recipe's
    value to four times that value) and the dropout, in the range that is usual for the kind of
    model. Trials are compared on the dev set by training.metric; language models are compared by
    bits per byte, which does not depend on the vocabulary. The test set is not used. All trials
    have the same number of updates, the same data and the same seed; training.patience and
    training.minutes are ignored. Diverged trials are listed in the table too. At the end, the
    recipe with the best settings is written to best.toml, ready for dragoman train. There is no
    best.toml if no trial scores better than guessing.

    If the sweep is stopped or killed, run the same command again, or run dragoman resume on the
    folder, on this machine or another. A larger --trials adds trials.

    With --minutes, the whole sweep lasts about that long. Without it, each trial takes as long as
    training the recipe once.

    Examples:

      dragoman sweep demo --trials 4 --minutes 4

      dragoman sweep demo --search-space training.schedule.peak=1e-4..3e-3:log

      dragoman sweep demo --search-space model.dropout=0.1,0.3 --search-space model.ffn_dim=256,512
    """
    prepare_process()
    from dragoman.studies.sweep import begin_sweep
    from dragoman.tasks import catalogue

    refuse_processes("the trials of a sweep are")
    chosen = catalogue.Recipe.load(args.recipe, args.set_)
    folder = args.to or Path("runs") / f"{chosen.name}-sweep"
    begun = begin_sweep(
        folder, chosen, args.search_space, trials=args.trials, seed=args.seed,
        minutes=args.minutes, keep=args.keep, say=say,
    )  # fmt: skip
    go_on_sweep(begun)


@arguments
class AblateArguments:
    """The arguments and options of ``dragoman ablate``."""

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
    prepare_process()
    from dragoman.studies.ablation import begin_ablation
    from dragoman.studies.ablation_rows import choose_rows, rows_of
    from dragoman.studies.seeds import parse_seeds
    from dragoman.tasks import catalogue

    wanted = [name.strip() for name in args.rows.split(",") if name.strip()] if args.rows else []
    loaded = catalogue.Recipe.load(args.recipe, args.set_)
    if args.list_:
        for row in choose_rows(rows_of(loaded), wanted):
            what = f"not possible: {row.cannot}" if row.cannot else row.what
            typer.echo(f"{row.part:<2}{row.name:<22}{what}")
        return
    refuse_processes("the rows of an ablation are")
    folder = args.to or Path("runs") / f"{loaded.name}-ablation"
    ablation = begin_ablation(
        folder, loaded, wanted, parse_seeds(args.seeds),
        minutes=args.minutes, keep=args.keep, say=say,
    )  # fmt: skip
    go_on_ablation(ablation)


def go_on_sweep(begun: Sweep) -> None:
    """Train the missing trials, then print the results of all."""
    from dragoman.studies.sweep import BEST

    _train_all(begun)
    files = begun.write()
    typer.echo(f"\n{begun.table()}\n\n{', '.join(map(str, files))}\n")
    begun.best_recipe()  # raises an error if there is none
    typer.echo(f"Next:\n  {command('train', begun.folder / BEST)}")


def go_on_ablation(begun: Ablation) -> None:
    """Train what is missing, then print all results."""
    from dragoman.studies.ablation_table import table, write

    _train_all(begun)
    files = write(begun)
    typer.echo(f"\n{table(begun)}\n\n{', '.join(map(str, files))}")


def _train_all(begun: Sweep | Ablation) -> None:
    """Train all missing runs. Errors: ``typer.Exit`` if the training was stopped."""
    from dragoman.studies.records import train_all

    again = command("resume", begun.folder)
    if not train_all(begun.folder, begun.trainings, say=say, again=again, keep=begun.plan.keep):
        raise typer.Exit(130)
