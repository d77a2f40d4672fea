"""``dragoman translate --watch``: files that come into a folder are translated as they come."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.cluster.watch import Do
    from dragoman.runs.run import Run

UNFIT = ("on", "part", "text", "paragraphs", "warn")
"""Options of ``translate`` that have no place beside ``--watch``."""

Lines = Callable[[Iterator[str]], Iterator[str]]
"""Translates lines, one by one."""


def check_watching(args: Any, run: Run) -> None:
    """Errors: ``DragomanError`` for arguments that do not go together."""
    from dragoman.errors import DragomanError

    for name in UNFIT:
        if getattr(args, name):
            raise DragomanError(f"--{name} has no place beside --watch: leave one of them out")
    if len(args.given or []) != 1 or args.to is None:
        raise DragomanError(
            "--watch takes one folder or bucket for what comes, and --to one for the translations: "
            "dragoman translate RUN inbox/ --to outbox/ --watch"
        )
    if not run.recipe.source.is_text:
        raise DragomanError(f"{run.folder} reads {run.task.noun}, and --watch translates text")


def watch(
    args: Any, translator: Any, lines: Lines, language: str,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Translate what comes until Ctrl-C or SIGTERM. Errors: ``DragomanError``."""
    from dragoman.cluster.watch import Watch
    from dragoman.plural import plural

    assert args.to is not None, "check_watching comes first"

    def do(source: Path, output: Path) -> None:
        _translate(args, translator, lines, language, source, output)

    with _Interrupts() as interrupts:
        watched = Watch(args.given[0], args.to, interrupts.breaking(do), say)
        say(f"watching {args.given[0]}; Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            watched.run(lambda: interrupts.come)
        said = plural(watched.count, "file was", "files were")
        bad = f", and {watched.failed:,} set aside" if watched.failed else ""
        say(f"stopped: {said} translated{bad}. The same command goes on")


def _translate(
    args: Any, translator: Any, lines: Lines, language: str, source: Path,
    output: Path,
) -> None:  # fmt: skip
    from dragoman.cli.given import lines_given
    from dragoman.documents.files import is_document, open_document
    from dragoman.formats.csv_cells import columns_of

    if not args.plain and (args.document or is_document(source)):
        document = open_document(source)
        if args.columns is not None:
            document = document.in_columns(columns_of(args.columns))
        translator.document(document, output, final=args.final)
        return
    read = lines_given([source], [], language, plain=args.plain)
    with output.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        out.writelines(f"{line}\n" for line in lines(read))


class _Interrupts:
    """Ctrl-C, and SIGTERM, by which services are stopped; both also where a shell has begun this in
    the background, which ignores Ctrl-C.

    The first one breaks off a translation and waits for the end of anything else: an exception
    amid the removal of a temporary folder, say, makes Python close a file twice (seen in 3.11).
    """

    def __init__(self) -> None:
        self.come = False
        self._breaks = False

    def __enter__(self) -> _Interrupts:
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._kept = {number: signal.signal(number, self._take) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._kept.items():
            signal.signal(number, handler)

    def breaking(self, do: Do) -> Do:
        """``do``, which the first interrupt breaks off."""

        def done(source: Path, output: Path) -> None:
            self._breaks = True
            try:
                if self.come:
                    raise KeyboardInterrupt
                do(source, output)
            finally:
                self._breaks = False

        return done

    def _take(self, number: int, frame: object) -> None:
        breaks, self._breaks = self._breaks or self.come, False
        self.come = True
        if breaks:
            raise KeyboardInterrupt
