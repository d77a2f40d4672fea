"""The verbs, put together, and what happens when one fails.

Exit codes: 0 done; 1 an error that a user can mend, told in one message; 2 wrong use of the
command line; 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from dragoman.cli import (
    ablate,
    align,
    average,
    classify,
    compare,
    data,
    demo,
    doctor,
    evaluate,
    figure,
    fill,
    look,
    parse,
    score,
    serve,
    shortlist,
    sweep,
    tag,
    train,
    translate,
    write,
)
from dragoman.cli.console import UNREADABLE
from dragoman.cli.one_or_two import OneOrTwo
from dragoman.errors import DragomanError
from dragoman.training.waiting import keep_to_quota


class Verbs(TyperGroup):
    """The verbs in panels, by what they are for: in plain text, as all that this program prints."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        panels: dict[Any, list[tuple[str, str]]] = {}
        for name, verb in self.commands.items():
            about = verb.get_short_help_str(formatter.width - 6 - width)
            panel = getattr(verb, "rich_help_panel", None)
            panels.setdefault(panel, []).append((name.ljust(width), about))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


app = typer.Typer(
    name="dragoman",
    cls=Verbs,
    help="Train a translator on your own pairs of sentences, measure it, use it, see inside it.",
    epilog="Begin with: dragoman demo. Your own text: dragoman train my.en my.de",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", rich_help_panel="Train")(demo.demo)
app.command("train", cls=OneOrTwo, rich_help_panel="Train")(train.train)
app.command("resume", rich_help_panel="Train")(train.resume)
app.command("sweep", rich_help_panel="Train")(sweep.sweep)
app.command("ablate", rich_help_panel="Train")(ablate.ablate)
app.command("average", rich_help_panel="Train")(average.average)
app.command("shortlist", rich_help_panel="Train")(shortlist.shortlist)
app.command("translate", rich_help_panel="Use")(translate.translate)
app.command("write", rich_help_panel="Use")(write.write)
app.command("classify", rich_help_panel="Use")(classify.classify)
app.command("tag", rich_help_panel="Use")(tag.tag)
app.command("fill", rich_help_panel="Use")(fill.fill)
app.command("parse", rich_help_panel="Use")(parse.parse)
app.command("serve", rich_help_panel="Use")(serve.serve)
app.command("align", rich_help_panel="Use")(align.align)
app.command("evaluate", rich_help_panel="Measure")(evaluate.evaluate)
app.command("score", rich_help_panel="Measure")(score.score)
app.command("compare", rich_help_panel="Measure")(compare.compare)
app.command("look", rich_help_panel="Look inside")(look.look)
app.command("figure", rich_help_panel="Look inside")(figure.figure)
app.add_typer(data.app, name="data", rich_help_panel="Data and machine")
app.command("doctor", rich_help_panel="Data and machine")(doctor.doctor)


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
            stream.reconfigure(encoding="utf-8", errors=UNREADABLE)
    keep_to_quota(os.environ)
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
