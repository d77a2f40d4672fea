"""``dragoman translate`` for documents: for files and folders, and with ``--watch`` for files that
arrive in a folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.console.output import Failures, command, progress_line

if TYPE_CHECKING:
    from dragoman.formats.units.document import Document
    from dragoman.runs.run import Run
    from dragoman.tasks.translation.translator import Translator


def documents_among(given: Sequence[str], to: Path | None, *, asked: bool) -> list[Path]:
    """Return the documents among the arguments: one, several, or a folder; an empty list if lines
    or a text are given. ``to``: the argument of ``--to``; with ``asked``, plain text files count as
    documents too."""
    if len(given) == 1 and os.path.isdir(given[0]):
        is_run = os.path.isfile(os.path.join(given[0], "recipe.toml"))
        return [] if is_run else [Path(given[0])]
    paths = [Path(name) for name in given]
    if not paths or not all(path.is_file() for path in paths):
        return []
    from dragoman.formats.catalogue import is_document

    # Without --to, the lines of a table or of Markdown are translated as lines.
    any_document = any(is_document(path, or_lines=to is None) for path in paths)
    return paths if asked or any_document else []


def check_targets(sources: Sequence[Path], to: Path | None) -> list[tuple[Path, Path]]:
    """Pair each document with the path of its translation. Errors: ``DragomanError`` if a document
    has no valid target."""
    from dragoman.formats.catalogue import check_is_another, check_is_new, files_in, format_name_of

    first = sources[0]
    if to is None:
        name = f"translated{first.suffix}" if first.is_file() else "translated"
        what = f"a document ({format_name_of(first)})" if first.is_file() else "a folder"
        raise DragomanError(
            f"{first} is {what}. Set a file for its translation: "
            f"{command('translate', 'RUN', first, '--to', name)}"
            + (". To read it line by line: --plain" if first.is_file() else "")
        )
    if first.is_dir():
        pairs = list(files_in(first, to))
        if not pairs:
            raise DragomanError(f"{first} has no files to translate")
        return pairs
    if len(sources) > 1:
        if not to.is_dir():
            raise DragomanError(f"{len(sources)} documents need a folder, but {to} is not a folder")
        pairs = [(source, to / source.name) for source in sources]
    else:
        pairs = [(first, to / first.name if to.is_dir() else to)]
    for source, target in pairs:
        check_is_another(source, target)
        check_is_new(target)
    return pairs


def translate_documents(
    args: Any, translator: Translator, pairs: Sequence[tuple[Path, Path]]
) -> None:
    """Translate documents. If one of several fails, it is reported and the others are translated.
    Errors: ``DragomanError``, at the end, if any failed."""
    from dragoman.formats.catalogue import open_document, write_document

    failures = Failures(len(pairs))
    for source, to in pairs:
        begun = time.monotonic()
        with failures:
            document = open_document(source)
            if not document.units and len(pairs) == 1:
                raise DragomanError(
                    f"{source} has no text to translate, so {to} is not written. The text may be "
                    "in pictures or already marked as translated"
                )
            document = _in_columns(document, args.columns)
            to.parent.mkdir(parents=True, exist_ok=True)
            tell = progress_line(str(source), "texts", quiet=args.quiet)
            data, changed = translator.document_of(document, final=args.final, progress=tell)
            write_document(to, data)
            if not args.quiet:
                seconds = time.monotonic() - begun
                texts = plural(changed, "text")
                sys.stderr.write(f"{to}: {texts} translated in {seconds:.1f} s\n")
    failures.end("file", "translated")


def _in_columns(document: Document, columns: str | None) -> Document:
    """Limit a table to the given columns. Other documents are returned as they are."""
    from dragoman.formats.csv_cells import columns_of

    return document if columns is None else document.in_columns(columns_of(columns))


Lines = Callable[[Iterator[str]], Iterable[str]]
"""A function that translates lines one by one."""


def check_watching(args: Any, run: Run) -> None:
    """Raise ``DragomanError`` for arguments that do not fit ``--watch``."""
    if len(args.given or []) != 1 or args.to is None:
        raise DragomanError(
            "--watch needs one folder or bucket for new files, and --to one for translations: "
            "dragoman translate RUN inbox/ --to outbox/ --watch"
        )
    if run.task.reads_files:
        raise DragomanError(f"{run.folder} reads {run.task.noun}, but --watch translates text")


def watch(
    args: Any, translator: Any, lines: Lines, language: str,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Translate arriving files until Ctrl-C or SIGTERM. ``lines`` translates the lines of files
    that are not documents; ``say`` receives messages. Errors: ``DragomanError``."""
    from dragoman.cluster.watch import Watch
    from dragoman.console.given import lines_given
    from dragoman.formats.catalogue import is_document, open_document
    from dragoman.training.interrupt import Interrupted, StopRequest

    assert args.to is not None, "check_watching comes first"

    stop = StopRequest()

    def do(source: Path, output: Path) -> None:
        # Only a translation is broken off. An exception during the removal of a temporary folder,
        # for example, makes Python close a file twice (seen in 3.11).
        with stop.interruptible():
            if not args.plain and (args.document or is_document(source)):
                document = _in_columns(open_document(source), args.columns)
                translator.document(document, output, final=args.final)
                return
            read = lines_given([source], [], language, plain=args.plain)
            with output.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
                out.writelines(f"{line}\n" for line in lines(read))

    with stop.listening():
        watched = Watch(args.given[0], args.to, do, say)
        say(f"watching {args.given[0]}; Ctrl-C ends it")
        with suppress(Interrupted, KeyboardInterrupt):
            watched.run(lambda: stop.requested)
        files = plural(watched.count, "file was", "files were")
        bad = f", and {watched.failed:,} set aside" if watched.failed else ""
        say(f"stopped: {files} translated{bad}. Run the same command to continue")
