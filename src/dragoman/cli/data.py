"""``dragoman data``: look at text before training on it, and fetch what is public."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.plural import plural
from dragoman.task import LEARNED

app = typer.Typer(
    help="Look at parallel text, or fetch some that is public.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("show")
def show(
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Whatever train takes: two files, one .tsv or .jsonl file, texts, trees or a "
            "recipe.",
            metavar="FILES",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            help="What to learn from the files, as for train: "
            f"{', '.join(LEARNED)}; translation if not given."
        ),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(
            help="For a language model or masked model, what a text is: text, documents or file."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting: data.cleaning.max_length=500")
    ] = None,
    keys: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Of a .jsonl file, where the sides are: translation.en translation.de"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of source and target, or of text and label, in a tab-separated file: "
            "2,3; for labelled texts also label,text or text,label."
        ),
    ] = None,
    label_ends: Annotated[
        str | None,
        typer.Option(
            help="The characters at which a label of a tree ends, as for train.",
            metavar="CHARACTERS",
        ),
    ] = None,
    languages: Annotated[
        str | None, typer.Option(help="Such as en-de; guessed from file names if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of text.")] = False,
) -> None:
    """Look at text before training: what cleaning drops, lengths, and what looks wrong.

    Each filter of the cleaning is named with how many pairs it drops and the first of them. At the
    end stands what would ruin a training, with lines that show it: sides shifted against each
    other, exchanged or mixed-up pairs, another language or encoding, a header, subtitles.

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
        inputs, task=task, texts=texts, keys=keys, columns=columns, label_ends=label_ends,
        languages=languages, changes=set_ or [], learns=False,
    )  # fmt: skip
    found = inspect_data(recipe)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        say(found.text())


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="What to fetch; dragoman data list names them.")],
    to: Annotated[Path | None, typer.Option(help="Where to; data/NAME if not given.")] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Take the files from this folder, not from the network."),
    ] = None,
) -> None:
    """Fetch public data: every file is checked by size and SHA-256 before it is put in place.

    Examples:

      dragoman data get multi30k

      dragoman data get multi30k --from /media/stick
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from dragoman.cli.console import command
    from dragoman.data.download import fetch, named_download
    from dragoman.recipe_text import shipped_recipes

    download = named_download(name)
    folder = to or Path("data") / name
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        tasks = {
            file.name: progress.add_task(file.name, total=file.size) for file in download.files
        }
        paths = fetch(
            download,
            folder,
            source,
            lambda file, done, total: progress.update(tasks[file], completed=done, total=total),
        )
    typer.echo(f"{plural(len(paths), 'file')} in {folder}, each of the right size and SHA-256")
    typer.echo(f"licence: {download.licence}")
    recipes = [recipe for recipe in shipped_recipes() if recipe.startswith(name)]
    if to is None and recipes:  # a recipe that ships looks for its text there
        typer.echo(f"\nNext:\n  {command('train', recipes[0])}")


@app.command("list")
def list_() -> None:
    """Name what `data get` can fetch, with its size and terms."""
    from dragoman.data.download import DOWNLOADS

    for download in DOWNLOADS.values():
        typer.echo(f"{download.name}: {download.description} ({download.size / 1e6:.1f} MB)")
        typer.echo(f"  licence: {download.licence}")
