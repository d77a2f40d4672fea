"""``dragoman import`` makes a run of a model of another program."""

from __future__ import annotations

from pathlib import Path

import typer

from dragoman.base.errors import DragomanError
from dragoman.console.options import argument, arguments


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
    from dragoman.sizing.languages import given_languages

    if args.to is None:
        raise DragomanError("set the folder of the new run: --to RUN")
    refuse_occupied(args.to)
    pair = given_languages(args.languages, []) if args.languages else None
    said = import_model(args.model, args.to, pair, args.tag)
    for line in said:
        typer.echo(line, err=True)
    typer.echo(f"{args.to} is a run now: dragoman translate {args.to} FILE")
