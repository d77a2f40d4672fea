"""What a command asks for, with capitals in place of a model. Not a test: tests import it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from loud import loud

from dragoman.cluster import command
from dragoman.cluster.inputs.files import files_of
from dragoman.cluster.inputs.lines_and_rows import Fields
from dragoman.cluster.parts.plan import Asked


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


def wanted(
    what: Asked, to: object, *, on: str | None = None, part: str | None = None,
    mixed: bool = False, pause: float = 0.0,
) -> command.CommandOptions:  # fmt: skip
    """The same as a whole command."""
    return command.CommandOptions(what, str(to), partial(loud, pause=pause), on, part, mixed)


def run(what: command.CommandOptions) -> str:
    """Do it, and give what was told."""
    told: list[str] = []
    command.run(what, lambda line: told.append(f"{line}\n"), told.append, terminal=False)
    return "".join(told)


def joined(folder: Path) -> bytes:
    """The content of all parts, one after another."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("part-*")))
