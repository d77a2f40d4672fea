"""The output of verbs for people, and the steps before training that several verbs share."""

from __future__ import annotations

import codecs
import logging
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural

if TYPE_CHECKING:
    from dragoman.cluster.driver import ProgressConsole


def _as_unreadable(error: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "\ufffd".encode() * (error.end - error.start), error.end


UNREADABLE = "dragoman.unreadable"
"""The error handler of output for bytes of the input that were not UTF-8: each is written as
U+FFFD, as the model reads it, not as a question mark, which any text may contain."""
codecs.register_error(UNREADABLE, _as_unreadable)


def log_to_stderr(quiet: bool = False, verbose: bool = False) -> None:
    """Show the program's own warnings; its notes unless ``quiet``; and details of the
    computation if ``verbose``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("dragoman")
    logger.handlers = [handler]
    logger.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)
    logger.propagate = False


def say(text: str) -> None:
    """Print lines for people; on a terminal, long lines are wrapped between words.

    Among the processes that torchrun starts, only the first prints.
    """
    if os.environ.get("RANK", "0") != "0":
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(text, markup=False, emoji=False, soft_wrap=not console.is_terminal)


def progress_console(quiet: bool) -> ProgressConsole:
    """Return a console that writes to standard error without delay, or nowhere if ``quiet``."""
    from dragoman.cluster.driver import ProgressConsole

    def write(text: str) -> None:
        if not quiet:
            sys.stderr.write(text)
            sys.stderr.flush()

    return ProgressConsole(write, sys.stderr.isatty())


class Failures:
    """This class continues work on several files after errors: it prints the error of each file
    that fails, and the other files are processed.

    Use it around the work on each file, then call ``end``. ``count``: the number of files, or
    None if it is not known. The error of a single file ends the work.
    """

    def __init__(self, count: int | None) -> None:
        self._count, self._failed = count, 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> bool:
        if not isinstance(error, DragomanError) or self._count == 1:
            return False
        sys.stderr.write(f"error: {error}\n")
        self._failed += 1
        return True

    def end(self, noun: str, done: str) -> None:
        """Raise ``DragomanError`` if files failed: "2 files of 3 could not be translated"."""
        if self._failed:
            of = "" if self._count is None else f" of {self._count}"
            failed = plural(self._failed, noun)
            raise DragomanError(f"{failed}{of} could not be {done}; see the errors above")


def progress_line(name: str, unit: str, *, quiet: bool) -> Callable[[float, float], None]:
    """Return a function that shows on a terminal how much of a file is done, in ``unit``, and
    the remaining time."""
    shown, begun = sys.stderr.isatty() and not quiet, time.monotonic()

    def tell(done: float, of: float) -> None:
        if not shown:
            return
        end = "\r\033[K"
        if done < of:
            left = (time.monotonic() - begun) * (of - done) / done if done else None
            rest = "" if left is None else f", {left:,.0f} s left"
            end = f"\r\033[K{name}: {done:,.0f} of {of:,.0f} {unit}{rest}"
        sys.stderr.write(end)
        sys.stderr.flush()

    return tell


@contextmanager
def output_to(to: str | Path | None, read: Sequence[str | Path]) -> Iterator[TextIO]:
    """Open standard output, or a file that appears only when it is complete. ``read``: the input
    files. Errors: ``DragomanError`` if the output is one of them, whose text would be lost."""
    from dragoman.base.atomic import replacing_file

    if to is None:
        yield sys.stdout
        return
    to = Path(to)
    if to.is_file() and any(os.path.isfile(path) and os.path.samefile(path, to) for path in read):
        raise DragomanError(f"{to} is an input file. Choose another output file with --to")
    with (
        replacing_file(to) as temporary,
        temporary.open("w", encoding="utf-8", errors=UNREADABLE, newline="\n") as out,
    ):
        yield out


def program() -> str:
    """Return the command that runs this program from here: "dragoman" if that finds it, else its
    path."""
    called = Path(sys.argv[0])
    if called.name != "dragoman":  # started by python -m dragoman
        return "python -m dragoman"
    path = shutil.which("dragoman")
    if path is not None and Path(path).resolve() == called.resolve():
        return "dragoman"
    return os.path.relpath(called)


def command(*words: object) -> str:
    """Return a command line of this program that can be pasted into a shell."""
    return f"{program()} {shlex.join(map(str, words))}"


def prepare_process() -> None:
    """Prepare the process before torch is imported."""
    from dragoman.native.allocator import keep_few_primitives, keep_memory

    keep_memory()
    keep_few_primitives(os.environ)


def refuse_processes(several: str) -> None:
    """Raise ``DragomanError`` if torchrun has started several processes.

    ``several``: the training runs with a verb, such as "several seeds are".
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise DragomanError(
            f"{several} trained one after another by a single process. Under torchrun, start "
            "dragoman train once for each run, with its --seed, --set and --to"
        )
