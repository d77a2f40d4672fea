"""The program of all verbs, and its handling of errors.

Exit codes: 0 done; 1 an error that a user can correct, explained in one message; 2 wrong use of
the command line; 130 interrupted.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from dragoman.base.errors import DragomanError
from dragoman.console.options import command_of
from dragoman.console.output import UNREADABLE
from dragoman.native.processor import keep_to_quota, wait_briefly
from dragoman.tasks import program


class Verbs(Mapping[str, Any]):
    """Commands by their names. The module of a command is imported when the command is first asked
    for, so that ``dragoman translate`` imports nothing that trains."""

    def __init__(self, *functions: str, **groups: str) -> None:
        """``functions``: the places of functions, such as ``cli.train.train``; each is called like
        its command. ``groups``: the names and places of groups of commands."""
        self._places = {place.rpartition(".")[2].strip("_"): place for place in functions} | groups

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = self._places[name].rpartition(".")
        return command_of(getattr(import_module(f"dragoman.{module}"), attribute))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


_shortlist, _use, _align = program.VERBS
PANELS = {
    "Train": Verbs(
        "cli.demo.demo", "cli.train.train", "cli.train.resume", "cli.train.distil",
        "cli.studies.sweep", "cli.studies.ablate", "cli.train.average", *_shortlist,
        "cli.data.prepare", "cli.interop.import_", "cli.interop.export",
    ),
    "Use": Verbs(*_use, "cli.serve.serve", *_align),
    "Measure": Verbs("cli.measure.evaluate", "cli.score.score", "cli.measure.compare"),
    "Look inside": Verbs("cli.look.look", "cli.look.figure", "cli.look.lesson"),
    "Data and machine": Verbs("cli.data.doctor", data="cli.data.GROUP"),
}  # fmt: skip
"""The verbs, grouped by their purpose for --help."""


class VerbGroup(TyperGroup):
    """The group of verbs in their panels, in plain text as all output of this program."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = ChainMap[str, Any](*PANELS.values())  # type: ignore[arg-type]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for panel, verbs in PANELS.items():
            with formatter.section(panel):
                room = formatter.width - 6 - width
                rows = {n.ljust(width): verb.get_short_help_str(room) for n, verb in verbs.items()}
                formatter.write_dl(list(rows.items()))


app = typer.Typer(
    name="dragoman",
    cls=VerbGroup,
    help="Train a translator or another Transformer on your own data, evaluate it, use it, and "
    "look inside it.",
    epilog="Start with: dragoman demo. Then use your own text: dragoman train my.en my.de",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    """Read the options of the program itself."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"dragoman {installed('dragoman')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def main() -> None:
    """Run the program ``dragoman``. A user's mistake never shows a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Text is UTF-8 in any locale: a translation must not fail at its first umlaut.
            stream.reconfigure(encoding="utf-8", errors=UNREADABLE)
    keep_to_quota(os.environ)
    wait_briefly(os.environ)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to delete temporary files
    try:
        app(prog_name="dragoman")
    except DragomanError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (such as head) has closed the pipe.
        _forget_output()
        sys.exit(0)
    except OSError as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # raised by clean-up after Ctrl-C
            sys.exit(130)
        if error.errno is None:  # no error of the operating system: a bug
            raise
        where = error.filename or "standard input or output"
        sys.stderr.write(f"error: {where}: {error.strerror}\n")
        _forget_output()
        sys.exit(1)


def _forget_output() -> None:
    """Keep the interpreter from complaining at exit about output that cannot be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
