"""``dragoman sweep``: which learning rate and which dropout suit a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.cli.options import argument, arguments, option

if TYPE_CHECKING:
    from dragoman.studies.sweep import Sweep


@arguments
class SweepArguments:
    """What ``dragoman sweep`` takes."""

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
    from dragoman.cli.console import log_to_stderr, prepare_process, refuse_processes, say

    prepare_process()
    from dragoman.recipe import Recipe
    from dragoman.studies.sweep import begin_sweep

    log_to_stderr()
    refuse_processes("the trials of a sweep are")
    chosen = Recipe.load(args.recipe, args.set_)
    folder = args.to or Path("runs") / f"{chosen.name}-sweep"
    begun = begin_sweep(
        folder, chosen, args.search_space, trials=args.trials, seed=args.seed,
        minutes=args.minutes, keep=args.keep, say=say,
    )  # fmt: skip
    go_on(begun)


def go_on(begun: Sweep) -> None:
    """Train the trials that are missing, then say what all of them found."""
    from dragoman.cli.console import command, say
    from dragoman.studies.several import train_all
    from dragoman.studies.sweep import BEST

    folder = begun.folder
    again = command("resume", folder)
    if not train_all(folder, begun.trainings, say=say, again=again, keep=begun.plan.keep):
        raise typer.Exit(130)
    files = begun.write()
    typer.echo(f"\n{begun.table()}\n\n{', '.join(map(str, files))}\n")
    begun.best_recipe()  # or an error that says why there is none
    typer.echo(f"Next:\n  {command('train', folder / BEST)}")
