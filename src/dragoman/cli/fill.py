"""``dragoman fill``: a masked model fills in the blanks of a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.given import Plain, files_among, lines_given

if TYPE_CHECKING:
    from dragoman.tasks.masked.filler import Filled


def fill(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts with blanks (___ where a word is missing), or files with one such text per "
            "line; standard input if not given.",
            metavar="TEXT",
        ),
    ] = None,
    plain: Plain = False,
    best: Annotated[
        int, typer.Option("--best", "-n", min=1, max=1000, help="So many candidates of each blank.")
    ] = 5,
    pieces: Annotated[
        int,
        typer.Option(
            min=1, max=8, help="Tokens of a blank, for words that the vocabulary has not whole."
        ),
    ] = 1,
    text_only: Annotated[
        bool, typer.Option("--text", help="Write the filled texts alone, a line each.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a line of JSON for each text.")
    ] = False,
) -> None:
    """Fill in the blanks of texts with a masked model, and say how probable each candidate is.

    A blank is three underscores or more. The candidates of a blank are given the text around it,
    while other blanks are open; their probabilities are among all tokens of the vocabulary, so that
    those of what cannot stand there (half a word, say) are missing from the sum. In the filled text
    the surest blank is filled first, and the others are asked again.

    Examples:

      dragoman fill runs/letters "The ___ sleeps."

      dragoman fill runs/letters "The ___ sees the ___." --best 10

      dragoman fill runs/letters --text < texts-with-blanks.txt

      dragoman fill runs/letters texts-with-blanks.txt --best 3
    """
    from dragoman.cli.console import log_to_stderr
    from dragoman.errors import DragomanError
    from dragoman.runs.run import Run

    log_to_stderr()
    if text_only and as_json:
        raise DragomanError("--text and --json: choose one")
    opened = Run.open(run)
    files = files_among(texts or (), "fill")
    from dragoman.tasks.masked.filler import Filled, Filler

    filler = Filler(opened)
    single = bool(texts) and not files  # a text, and no line of several
    lines = lines_given(files, texts or (), opened.recipe.languages.target, plain=plain)
    for number, text in enumerate(lines):
        try:
            # An empty line stays one, so that the lines of a file and of what is written agree.
            empty = not single and not text.strip()
            found = Filled(text, (), (), 0.0) if empty else filler(text, best, pieces)
        except DragomanError as error:
            raise error if single else DragomanError(f"line {number + 1}: {error}") from error
        if text_only:
            typer.echo(found.text)
        elif as_json:
            typer.echo(json.dumps(_plain(found), ensure_ascii=False))
        else:
            typer.echo(("\n" if number else "") + _shown(found))


def _shown(found: Filled) -> str:
    """The text, and a table of the candidates of each blank."""
    from dragoman.pictures.plain_table import plain_table

    tables = []
    for number, candidates in enumerate(found.blanks, 1):
        rows = [(one.text, f"{one.probability:.4f}") for one in candidates]
        name = "blank" if len(found.blanks) == 1 else f"blank {number}"
        tables.append(plain_table((name, "probability"), rows))
    return "\n\n".join([found.text, *tables])


def _plain(found: Filled) -> dict[str, object]:
    return {
        "text": found.text,
        "log_probability": found.score,
        "blanks": [
            [{"text": one.text, "probability": one.probability} for one in candidates]
            for candidates in found.blanks
        ],
    }
