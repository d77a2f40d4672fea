"""The verb ``dragoman fill``, which fills the blanks of a text with a masked model, and the demo of
``dragoman demo --task fill``."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import DragomanError
from dragoman.console.demo_files import Demo
from dragoman.console.given import Plain
from dragoman.console.lines import (
    Into,
    LineVerb,
    LineWork,
    PartsArguments,
    To,
    do_lines,
    wants_parts,
)
from dragoman.console.options import RunFolder, argument, arguments, option

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.run import Run
    from dragoman.tasks.masked.filler import Filled


@arguments
class FillArguments(PartsArguments):
    """The arguments and options of ``dragoman fill``."""

    run: RunFolder = argument("RUN")
    texts: list[str] = argument("TEXT", None)
    """Texts with blanks (___ where a word is missing), or files with one such text per line.
    Default: standard input."""
    to: To = None
    plain: Plain = False
    best: int = option(5, "-n", ge=1, le=1000)
    """The number of candidates to show for each blank."""
    pieces: int = option(1, ge=1, le=8)
    """The number of tokens in each blank, for words that are not a single token of the
    vocabulary."""
    text: bool = False
    """Write only the filled texts, one per line."""
    json: bool = False
    """Write one line of JSON for each text."""
    into: Into = "filled"


def fill(args: FillArguments) -> None:
    """Fill in the blanks of texts with a masked model, and show the probability of each candidate.

    A blank is three or more underscores. The candidates for a blank are computed while all other
    blanks are still open. Their probabilities are relative to all tokens of the vocabulary; tokens
    that cannot fill a blank, such as half a word, are not listed, so the listed probabilities may
    not sum to 1. In the filled text, the blank with the most probable candidate is filled first,
    and the remaining blanks are then recomputed.

    Examples:

      dragoman fill runs/letters "The ___ sleeps."

      dragoman fill runs/letters "The ___ sees the ___." --best 10

      dragoman fill runs/letters --text < texts-with-blanks.txt

      dragoman fill runs/letters texts-with-blanks.txt --best 3
    """
    if args.text and args.json:
        raise DragomanError("use only one of --text and --json")
    from dragoman.tasks.catalogue import open_run

    run = open_run(args.run, "masked", "which fills no blanks")
    if wants_parts(args) and not args.text and not args.json:
        raise DragomanError("--on and --part do not work with tables. Add --text or --json")
    verb = LineVerb("fill", filling, unfit=(), inputs=("texts",))
    do_lines(verb, args, run, run.recipe.languages.target)


def filling(args: FillArguments, run: Run, precision: str) -> LineWork:
    """Open the work of a worker process on lines."""
    from dragoman.tasks.masked.filler import Filled, Filler

    filler = Filler(run)
    are_lines = not args.texts or wants_parts(args) or os.path.exists(args.texts[0])

    def outputs(lines: Iterable[str]) -> Generator[str]:
        for number, text in enumerate(lines, 1):
            if are_lines and not text.strip():
                # An empty line stays empty, so that input and output lines correspond.
                filled = Filled(text, (), (), 0.0)
            else:
                try:
                    filled = filler(text, args.best, args.pieces)
                except DragomanError as error:
                    if not are_lines:
                        raise
                    raise DragomanError(f"line {number}: {error}") from error
            yield _format(args, filled, number)

    return LineWork(filler, outputs)


def _format(args: FillArguments, filled: Filled, number: int) -> str:
    """Format the result of a text as one line, or as a table without ``--text`` and ``--json``."""
    if args.text:
        return filled.text
    if args.json:
        return json.dumps(_plain(filled), ensure_ascii=False)
    return ("\n" if number > 1 else "") + _candidate_table(filled)


def _candidate_table(filled: Filled) -> str:
    from dragoman.pictures.labels import plain_table

    tables = []
    for number, candidates in enumerate(filled.blanks, 1):
        rows = [(candidate.text, f"{candidate.probability:.4f}") for candidate in candidates]
        name = "blank" if len(filled.blanks) == 1 else f"blank {number}"
        tables.append(plain_table((name, "probability"), rows))
    return "\n\n".join([filled.text, *tables])


def _plain(filled: Filled) -> dict[str, object]:
    return {
        "text": filled.text,
        "log_probability": filled.score,
        "blanks": [
            [{"text": choice.text, "probability": choice.probability} for choice in candidates]
            for candidates in filled.blanks
        ],
    }


_BLANKS = (
    "The ___ didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too ___.",
    "The ___ eats the ___.",
)


def show_blanks(run: Run, measured: Any, console: Console) -> str:
    """Show candidates for the blanks of English sentences, and the attention of each word."""
    from dragoman.pictures.labels import plain_table
    from dragoman.pictures.records import merged_to_words
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.tasks.masked.filler import Filler
    from dragoman.tasks.report import write_report

    console.print(f"\n{measured.table()}\n", markup=False)
    filler = Filler(run)
    console.print("What may fill a blank, given the text on both sides of it:\n")
    for text in _BLANKS:
        filled = filler(text)
        console.print(f"  {text}\n  [bold]{filled}[/bold]\n")
        for candidates in filled.blanks:
            rows = [(candidate.text, f"{candidate.probability:.3f}") for candidate in candidates]
            table = plain_table(("candidate", "probability"), rows)
            console.print("\n".join(f"    {line}" for line in table.splitlines()) + "\n")
    record = merged_to_words(filler.look(_BLANKS[0], ()))
    console.print("Where each word looks, the blank as <mask> (percent of attention)\n")
    last = len(record.encoder) - 1
    console.print(heatmap_text(record.heatmap("encoder", last), min(console.width, 100)))
    return f"The whole report: {write_report(run)}"


DEMO = Demo(
    "demo-masked", "an encoder, which fills in blanks of English sentences", show_blanks, (
        f"fill {{to}} {shlex.quote(_BLANKS[2])} --best 10",
        f"look {{to}} {shlex.quote(_BLANKS[0])} --to look.html",
        "train my.txt --task masked  # your own text",
    ),
)  # fmt: skip
