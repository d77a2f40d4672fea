"""``dragoman export`` makes a model of another program of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer

from dragoman.base.errors import DragomanError
from dragoman.console.options import RunFolder, argument, arguments


@arguments
class ExportArguments:
    """The arguments and options of ``dragoman export``."""

    run: RunFolder = argument()
    folder: Path = argument()
    """The new folder for the model's files."""
    to: Literal["huggingface", "ctranslate2", "argos"] | None = None
    """The program. huggingface: a Marian model of transformers; ctranslate2: CTranslate2; argos: a
    package that LibreTranslate and Argos Translate install."""
    license: str | None = None
    """The licence that the model's card states, by its identifier, such as apache-2.0. It depends
    on the licence of the text that the model was trained on. Default: none."""


def export(args: ExportArguments) -> None:
    """Write a translator as a model of another program.

    The folder has all that the program needs: weights in fp32, vocabularies, settings, and a card
    (README.md) with the scores of the run and the lines that translate with it there. The weights
    are the same numbers. A setting that the program cannot compute is refused by its name.
    docs/import.md says what can be exported, and what is exact.

    Examples:

      dragoman export runs/en-de --to huggingface opus-mt-en-de --license cc-by-4.0

      dragoman export runs/en-de --to argos package
    """
    from dragoman.interop.export import export_run
    from dragoman.tasks.catalogue import open_run

    if args.to is None:
        raise DragomanError("set the program: --to huggingface, --to ctranslate2 or --to argos")
    if args.folder.exists() and not (args.folder.is_dir() and not any(args.folder.iterdir())):
        raise DragomanError(f"{args.folder} already exists. Give a new folder")
    made = export_run(open_run(args.run), args.to, args.folder, args.license)
    if args.license is None:
        typer.echo("the card states no licence: to state one, use --license", err=True)
    typer.echo(f"{made} is written; {args.folder / 'README.md'} says how it is used")
