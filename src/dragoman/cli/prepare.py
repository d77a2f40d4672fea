"""``dragoman prepare`` makes the text of a recipe ready for training."""

from __future__ import annotations

from pathlib import Path

from dragoman.base.errors import DragomanError
from dragoman.console.options import Quiet, argument, arguments, option
from dragoman.console.output import progress_console


@arguments
class PrepareArguments:
    """The arguments and options of ``dragoman prepare``."""

    recipe: str = argument("RECIPE")
    """A recipe: a .toml file that names its text, or the name of a recipe that comes with
    dragoman."""
    to: str | None = None
    """The folder or bucket to write to. Repeat the command to continue after an interruption."""
    on: str | None = None
    """Where the workers run: local on this machine (local:4 starts four), ray on a Ray cluster
    (ray:40 starts forty). Default: one process."""
    part: str | None = None
    """For several commands that share the work, such as the tasks of a Slurm array: 17/500 begins
    with every 500th part, from the 17th on, and then does parts that the others have not done yet.
    0/500 only writes the plan."""
    lines: int = option(20_000, ge=1, le=10_000_000)
    """The most lines in a part."""
    set_: list[str] = option()
    """Change any setting, such as text.vocabulary=32000. May be repeated."""
    quiet: Quiet = option(False, "-q")


def prepare(args: PrepareArguments) -> None:
    """Prepare the text of a recipe for training, in parts, by several processes or machines.

    The text is read, cleaned and split, the vocabularies are learned, and everything is stored as
    tokens, as ``dragoman train`` does before its first update. Then dragoman train takes the folder
    instead of the recipe, and begins at once. docs/scale.md describes how the work is divided.

    Examples:

      dragoman prepare big.toml --to prepared --on local:4

      dragoman train prepared
    """
    from dragoman.cluster.driver import Command
    from dragoman.prepare.command import run
    from dragoman.tasks import catalogue

    if args.to is None:
        raise DragomanError("set the folder or bucket for the prepared text: --to FOLDER")
    if Path(args.recipe).is_dir() or (
        Path(args.recipe).is_file() and Path(args.recipe).suffix != ".toml"
    ):
        raise DragomanError(
            f"{args.recipe} is not a recipe (.toml). To prepare text, give a recipe that lists "
            "it under data.train (docs/recipes.md)"
        )
    recipe = catalogue.Recipe.load(args.recipe, args.set_)
    run(Command(args.to, args.on, args.part, progress_console(args.quiet)), recipe, args.lines)
