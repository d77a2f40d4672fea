"""``dragoman data`` checks text before training and downloads public data. ``dragoman prepare``
makes the text of a recipe ready for training. ``dragoman doctor`` shows what this machine can do.
"""

from __future__ import annotations

from pathlib import Path

import typer
from typer.core import TyperGroup

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.cli.train import TaskName
from dragoman.console.options import Quiet, argument, arguments, command_of, option
from dragoman.console.output import command, prepare_process, progress_console, say
from dragoman.sizing.options import FilesOptions, TrainOptions


@arguments
class ShowArguments(FilesOptions):
    """The arguments and options of ``dragoman data show``."""

    task: TaskName = None
    inputs: list[str] = argument("FILES")
    """The same files, folders or recipe that train accepts."""
    set_: list[str] = option()
    """Change any setting, such as data.cleaning.max_length=500. May be repeated."""
    json: bool = False
    """Print JSON instead of text."""


def show(args: ShowArguments) -> None:
    """Check data before training: what cleaning drops, how long the lines are, and what looks
    wrong.

    For each cleaning filter, the number of dropped pairs and the first of them are printed. The end
    of the output lists problems that would spoil a training run, with example lines: sides that are
    shifted against each other, swapped or mixed-up pairs, a wrong language or encoding, a header
    line, subtitles.

    Examples:

      dragoman data show my.en my.de

      dragoman data show my.tsv --columns 2,3

      dragoman data show reviews.tsv --task classification

      dragoman data show my.jsonl --keys translation.en translation.de
    """
    import json

    from dragoman.tasks.from_files import recipe_of
    from dragoman.tasks.inspection import inspect_data

    given = {name: value for name, value in vars(args).items() if name != "json"}
    inspection = inspect_data(recipe_of(TrainOptions(**given), learns=False).recipe)
    if args.json:
        typer.echo(json.dumps(inspection.to_dict(), indent=2, ensure_ascii=False))
    else:
        say(inspection.text())


@arguments
class GetArguments:
    """The arguments and options of ``dragoman data get``."""

    name: str = argument()
    """The name of the data; dragoman data list shows all names."""
    to: Path | None = None
    """The folder to write to. Default: data/NAME."""
    from_: Path | None = None
    """Copy the files from this folder instead of downloading them."""


def get(args: GetArguments) -> None:
    """Download public data. The size and SHA-256 of every file are checked before it is put in
    place.

    Examples:

      dragoman data get multi30k

      dragoman data get multi30k --from /media/stick
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from dragoman.data.download import fetch, find_download
    from dragoman.runs.recipe.recipe_text import shipped_recipes

    download = find_download(args.name)
    folder = args.to or Path("data") / args.name
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        tasks = {
            file.name: progress.add_task(file.name, total=file.size) for file in download.files
        }
        paths = fetch(
            download,
            folder,
            args.from_,
            lambda file, done, total: progress.update(tasks[file], completed=done, total=total),
        )
    typer.echo(f"{plural(len(paths), 'file')} in {folder}, each of the right size and SHA-256")
    typer.echo(f"licence: {download.licence}")
    recipes = [recipe for recipe in shipped_recipes() if recipe.startswith(args.name)]
    if args.to is None and recipes:  # a recipe that ships expects its text there
        typer.echo(f"\nNext:\n  {command('train', recipes[0])}")


@arguments
class ListArguments:
    """The arguments of ``dragoman data list``: it has none."""


def list_(args: ListArguments) -> None:
    """List the data that data get can download, with sizes and licences."""
    from dragoman.data.download import DOWNLOADS

    for download in DOWNLOADS.values():
        typer.echo(f"{download.name}: {download.description} ({download.size / 1e6:.1f} MB)")
        typer.echo(f"  licence: {download.licence}")


GROUP = TyperGroup(
    name="data",
    help="Check data before training, or download public data.",
    commands={"show": command_of(show), "get": command_of(get), "list": command_of(list_)},
    no_args_is_help=True,
    rich_markup_mode=None,
)


@arguments
class DoctorArguments:
    """The arguments and options of ``dragoman doctor``."""

    measure: bool = False
    """Measure the speed of every way to train and to translate on this machine."""


def doctor(args: DoctorArguments) -> None:
    """Show the capabilities of this machine: threads, vector and matrix units, GPU, precision,
    versions.

    The output also shows whether the native kernels are used and, if not, the reason. Include it in
    bug reports. With --measure, every way to train the paper's base model and to translate is timed
    (about ten seconds on an idle machine), and the output shows which way is used.
    """
    prepare_process()
    from dragoman.engine.machine import machine_facts

    facts = machine_facts()
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        typer.echo(f"{name:<{width}}  {value}")
    if not args.measure:
        return
    from dragoman.engine.ways import (
        SHAPES,
        TRAINING_HEAD,
        TRANSLATING_HEAD,
        measure_shape,
        training_rows,
        translating_rows,
    )
    from dragoman.pictures.labels import plain_table
    from dragoman.training.fastest_way import Timing

    base = SHAPES[-1]
    typer.echo(f"\nTraining {base.name}, {base.vocabulary:,} tokens, on the CPU:\n")
    typer.echo(plain_table(TRAINING_HEAD, training_rows(measure_shape(base, Timing()))))
    typer.echo("\nTranslating, a small Transformer:\n")
    typer.echo(plain_table(TRANSLATING_HEAD, translating_rows()))


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
