"""``dragoman data``: look at text before training on it, and fetch what is public."""

from __future__ import annotations

from pathlib import Path

import typer
from typer.core import TyperGroup

from dragoman.cli.options import argument, arguments, commands, option
from dragoman.cli.train import FilesArguments
from dragoman.plural import plural


@arguments
class ShowArguments(FilesArguments):
    """What ``dragoman data show`` takes."""

    inputs: list[str] = argument("FILES")
    """What train takes: two files, one .tsv or .jsonl file, texts, tags, trees or a recipe."""
    set_: list[str] = option()
    """Change any setting, such as data.cleaning.max_length=500. May be repeated."""
    json: bool = False
    """Print JSON instead of text."""


def show(args: ShowArguments) -> None:
    """Look at text before training: what cleaning drops, lengths, and what looks wrong.

    For each filter of the cleaning, it prints how many pairs the filter drops and the first of
    them. At the end it lists what would ruin a training, with lines that show it: sides shifted
    against each other, exchanged or mixed-up pairs, another language or encoding, a header,
    subtitles.

    Examples:

      dragoman data show my.en my.de

      dragoman data show my.tsv --columns 2,3

      dragoman data show reviews.tsv --task classification

      dragoman data show my.jsonl --keys translation.en translation.de
    """
    import json

    from dragoman.cli.console import say
    from dragoman.sizing.from_files import recipe_of
    from dragoman.tasks.inspection import inspect_data

    recipe, _ = recipe_of(
        args.inputs, task=args.task, texts=args.texts, keys=args.keys, columns=args.columns,
        groups=args.groups, label_ends=args.label_ends, languages=args.languages,
        changes=args.set_, learns=False,
    )  # fmt: skip
    found = inspect_data(recipe)
    if args.json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        say(found.text())


@arguments
class GetArguments:
    """What ``dragoman data get`` takes."""

    name: str = argument()
    """The data to fetch; dragoman data list names all."""
    to: Path | None = None
    """The folder to write to. Default: data/NAME."""
    from_: Path | None = None
    """Take the files from this folder instead of the network."""


def get(args: GetArguments) -> None:
    """Fetch public data; every file is checked by size and SHA-256 before it is put in place.

    Examples:

      dragoman data get multi30k

      dragoman data get multi30k --from /media/stick
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from dragoman.cli.console import command
    from dragoman.data.download import fetch, named_download
    from dragoman.recipe_text import shipped_recipes

    download = named_download(args.name)
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
    if args.to is None and recipes:  # a recipe that ships looks for its text there
        typer.echo(f"\nNext:\n  {command('train', recipes[0])}")


@arguments
class ListArguments:
    """``dragoman data list`` takes nothing."""


def list_(args: ListArguments) -> None:
    """List what data get can fetch, with sizes and terms."""
    from dragoman.data.download import DOWNLOADS

    for download in DOWNLOADS.values():
        typer.echo(f"{download.name}: {download.description} ({download.size / 1e6:.1f} MB)")
        typer.echo(f"  licence: {download.licence}")


GROUP = TyperGroup(
    name="data",
    help="Look at text before training, or fetch public text.",
    commands=commands(show, get, list_),
    no_args_is_help=True,
    rich_markup_mode=None,
)
