"""What a command asks for, with capitals in place of a model. Not a test: tests import it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from loud import loud

from dragoman.cluster import lines
from dragoman.cluster.driver import Command, ProgressConsole
from dragoman.cluster.files import files_of
from dragoman.cluster.kinds import Fields
from dragoman.cluster.lines import MakeMapper
from dragoman.cluster.plan import Asked


def asked(
    *inputs: Sequence[object],
    lines: int = 4,
    read: tuple[str, ...] = ("text",),
    run: str = "a1",
    verb: str = "translate",
    language: str | None = None,
    **options: object,
) -> Asked:
    """Of lists of addresses whose lines belong together."""
    columns = [files_of([str(one) for one in addresses]) for addresses in inputs]
    files = tuple(zip(*columns, strict=True))
    return Asked(verb, {"runs/x": run}, options, lines, Fields(read, "out"), files, language)


class Wanted(NamedTuple):
    """A whole command."""

    what: Asked
    to: str
    make: MakeMapper
    on: str | None = None
    part: str | None = None
    mixed: bool = False


def wanted(
    what: Asked, to: object, *, on: str | None = None, part: str | None = None,
    mixed: bool = False, pause: float = 0.0,
) -> Wanted:  # fmt: skip
    """The same as a whole command."""
    return Wanted(what, str(to), partial(loud, pause=pause), on, part, mixed)


def run(one: Wanted) -> str:
    """Do it, and give what was told."""
    told: list[str] = []
    given = Command(one.to, one.on, one.part, ProgressConsole(told.append, False))
    lines.run(given, one.what, one.make, mixed=one.mixed)
    return "".join(told)


def joined(folder: Path) -> bytes:
    """The content of all parts, one after another."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("part-*")))
