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
    """A recipe: a .toml file, or the name of one that ships."""
    search_space: list[str] = option(was="--over")
    """A setting and its values: key=LOW..HIGH, key=LOW..HIGH:log (evenly on a logarithmic scale),
    or key=A,B,C. Values are whole numbers if both ends are. May be repeated."""
    trials: int = option(8, ge=2, le=10_000)
    """The number of trials; the first is the recipe as it is."""
    minutes: float | None = option(ge=0.1)
    """The time for all trials together. Each gets the updates that fit into its share, counted once
    from the speed of this machine. Without it, each is as long as the recipe says."""
    seed: int = option(1, ge=0)
    """The seed of the search; it decides the trials."""
    to: Path | None = None
    """The folder to make. Default: runs/NAME-sweep."""
    set_: list[str] = option()
    """Change any setting for all trials, such as plan.tokens_per_update=2048. May be repeated."""
    keep: bool = False
    """Keep the run of each trial, not only its record."""


def sweep(args: SweepArguments) -> None:
    """Search settings at random: trials of equal cost, a table, a picture, the best recipe.

    Without --search-space, the learning rate (from a quarter of the recipe's to four times it) and
    the dropout that is usual for the kind of model are searched. Trials are judged on dev by
    training.metric; language models by bits per byte, which compares across vocabularies. The test
    set is not used. All trials have the same updates, text and seed, whatever training.patience or
    training.minutes say. A trial that diverges is a row of the table. At the end, best.toml is the
    recipe with the best settings, for dragoman train; it is missing if no trial scores better than
    guessing.

    If it is stopped or killed, give the same command again, or dragoman resume with the folder,
    here or on another machine. With more --trials it adds the further ones.

    It takes --minutes, or the number of trials times one training by the recipe.

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
