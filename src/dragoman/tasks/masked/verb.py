"""``dragoman fill``: a masked model fills in the blanks of a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dragoman.base.errors import DragomanError
from dragoman.cli.console import log_to_stderr, opened_run, output_to
from dragoman.cli.given import Plain, files_among, lines_given
from dragoman.cli.in_parts import Into, Outputs, PartsArguments, To, in_parts, wants_parts
from dragoman.cli.options import RunFolder, argument, arguments, option

if TYPE_CHECKING:
    from dragoman.runs.run import Run
    from dragoman.tasks.masked.filler import Filled, Filler


@arguments
class FillArguments(PartsArguments):
    """What ``dragoman fill`` takes."""

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
    log_to_stderr()
    if args.text and args.json:
        raise DragomanError("--text and --json: choose one")
    opened = opened_run(args.run, "masked", "which fills no blanks")
    if wants_parts(args):
        if not args.text and not args.json:
            raise DragomanError("tables have no place in parts: add --text or --json")
        language = opened.recipe.languages.target
        in_parts("fill", args, [args.texts], outputs_of, language, inputs_named=("texts",))
        return
    files = files_among(args.texts, "fill", "--to")
    from dragoman.tasks.masked.filler import Filler

    filler = Filler(opened)
    single = bool(args.texts) and not files  # a text, and no line of several
    lines = lines_given(files, args.texts, opened.recipe.languages.target, plain=args.plain)
    with output_to(args.to, files) as out:
        for number, text in enumerate(lines):
            try:
                found = _filled(filler, args, text, is_line=not single)
            except DragomanError as error:
                raise error if single else DragomanError(f"line {number + 1}: {error}") from error
            if args.text or args.json:
                out.write(f"{_written(args, found)}\n")
            else:
                out.write(("\n" if number else "") + f"{_shown(found)}\n")
            out.flush()


def outputs_of(args: FillArguments, run: Run, precision: str) -> Outputs:
    """What a worker does to lines."""
    from dragoman.tasks.masked.filler import Filler

    filler = Filler(run)
    return filler, lambda lines: (_written(args, _filled(filler, args, text)) for text in lines)


def _filled(filler: Filler, args: FillArguments, text: str, *, is_line: bool = True) -> Filled:
    """A text with its blanks filled. An empty line stays one, so that the lines of a file and of
    what is written agree."""
    from dragoman.tasks.masked.filler import Filled

    if is_line and not text.strip():
        return Filled(text, (), (), 0.0)
    return filler(text, args.best, args.pieces)


def _written(args: FillArguments, found: Filled) -> str:
    """One line."""
    return found.text if args.text else json.dumps(_plain(found), ensure_ascii=False)


def _shown(found: Filled) -> str:
    """The text, and a table of the candidates of each blank."""
    from dragoman.pictures.labels import plain_table

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
