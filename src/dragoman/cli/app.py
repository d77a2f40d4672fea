"""The verbs, put together, and what happens when one fails.

Exit codes: 0 done; 1 an error that a user can mend, told in one message; 2 wrong use of the
command line; 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import typer

from dragoman.cli import (
    average,
    compare,
    data,
    demo,
    doctor,
    evaluate,
    figure,
    look,
    score,
    serve,
    shortlist,
    train,
    translate,
)
from dragoman.errors import DragomanError

app = typer.Typer(
    name="dragoman",
    help="Train a translator on your own pairs of sentences, measure it, use it, see inside it.",
    epilog="Begin with: dragoman demo. Your own text: dragoman train my.en my.de",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.add_typer(data.app, name="data")
app.command("train")(train.train)
app.command("resume")(train.resume)
app.command("translate")(translate.translate)
app.command("evaluate")(evaluate.evaluate)
app.command("score")(score.score)
app.command("compare")(compare.compare)
app.command("average")(average.average)
app.command("shortlist")(shortlist.shortlist)
app.command("serve")(serve.serve)
app.command("look")(look.look)
app.command("figure")(figure.figure)
app.command("doctor")(doctor.doctor)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    """Options of the program itself."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"dragoman {installed('dragoman')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def main() -> None:
    """The program ``dragoman``. A user's mistake never shows a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Text is UTF-8 whatever the locale: a translation must not fail at its first umlaut.
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        app(prog_name="dragoman")
    except DragomanError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, say) has gone.
        _forget_output()
        sys.exit(0)
    except OSError as error:
        if error.errno is None:  # no word of the operating system: a mistake of ours
            raise
        where = error.filename or "standard input or output"
        sys.stderr.write(f"error: {where}: {error.strerror}\n")
        _forget_output()
        sys.exit(1)


def _forget_output() -> None:
    """Keep the interpreter from complaining, as it ends, of output that nobody can take."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
