"""``dragoman import`` makes a run of a model of another program; ``dragoman export`` makes a model
of another program of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer

from dragoman.base.errors import DragomanError
from dragoman.console.options import RunFolder, argument, arguments


@arguments
class ImportArguments:
    """The arguments and options of ``dragoman import``."""

    model: Path = argument("FOLDER_OR_ZIP")
    """The folder of a model, or a ZIP file of it: a Marian model of Hugging Face (OPUS-MT) or
    of Marian itself (.npz), or a Transformer of CTranslate2."""
    to: Path | None = None
    """The folder of the new run."""
    tag: str | None = None
    """The tag of a target language, such as deu for >>deu<<, that each source begins with by
    default, if the model has several. Default: its only one, or none."""
    languages: str | None = None
    """The languages, source before target, such as ar-en. Default: those that the model or the name
    of its folder tells."""


def import_(args: ImportArguments) -> None:
    """Convert a model of another program into a run.

    The run has the weights, the vocabularies and the search settings of that model, and works with
    every command: translate, evaluate, serve, look, train --from and others. Nothing in the model's
    files is executed. docs/import.md lists what can be imported, and what is exact.

    Example:

      dragoman import opus-mt-en-de --to runs/en-de
    """
    from dragoman.interop.folder import import_model
    from dragoman.runs.run import refuse_occupied
    from dragoman.sizing.options import given_languages

    if args.to is None:
        raise DragomanError("set the folder of the new run: --to RUN")
    refuse_occupied(args.to)
    pair = given_languages(args.languages, []) if args.languages else None
    said = import_model(args.model, args.to, pair, args.tag)
    for line in said:
        typer.echo(line, err=True)
    typer.echo(f"{args.to} is a run now: dragoman translate {args.to} FILE")


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
