"""What documents at the limits of a server cost: processor time and memory, without a model.

    python benchmarks/document_costs.py
    python benchmarks/document_costs.py json csv

Every shape is as large as a server takes a file (10 MB, or 1,000,000 characters of text), and made
to be dear. A process of its own reads it, puts its text into upper case and writes it; told are its
processor seconds and the most memory that it held, what it held before it read the file taken off.
``-n`` makes all shapes smaller by a factor, so that what is not linear is seen.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

from document_shapes import ENDINGS, SHAPES

from dragoman.errors import DragomanError
from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import OutputOptions
from dragoman.formats.units.unit import Target, Unit


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _held() -> int:
    """The most memory of this process in KiB, since it was begun."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def _translated(name: str, data: bytes, limit: int, to: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    begun, memory = _seconds(), _held()
    try:
        document = read_document(data, name)
        units = document.units
        document.join(upper(units), OutputOptions("de"))
        counts = len(units), sum(len(one.tags) for one in units), sum(len(u.text) for u in units)
        told = "{:,} units, {:,} codes, {:,} characters".format(*counts)
    except DragomanError as error:
        told = f"refused: {error}"
    to.send((_seconds() - begun, (_held() - memory) // 1024, told))


def upper(units: Sequence[Unit]) -> list[Target]:
    return [[x.upper() if isinstance(x, str) else x for x in one.as_it_is] for one in units]


def cost(name: str, data: bytes, limit: int) -> tuple[float, int, str]:
    """Processor seconds, MB, and what was found, in a process of its own."""
    here, there = Pipe(duplex=False)
    process = get_context("fork").Process(target=_translated, args=(name, data, limit, there))
    process.start()
    there.close()
    try:
        found: tuple[float, int, str] = here.recv()
    except EOFError:
        found = float(limit), 0, "ended: out of time"
    process.join()
    return found


def measured(formats: list[str], share: float, limit: int) -> Iterator[str]:
    for kind in formats:
        for what, shape in SHAPES[kind].items():
            data = shape(share)
            seconds, memory, told = cost(f"a.{ENDINGS.get(kind, kind)}", data, limit)
            yield f"| {kind} | {what} | {len(data):,} | {seconds:.1f} | {memory} | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("formats", nargs="*", help=f"of {', '.join(SHAPES)}; all without any")
    parser.add_argument("-n", type=float, default=1.0, help="size by which all are divided")
    parser.add_argument("--limit", type=int, default=60, help="processor seconds of one shape")
    given = parser.parse_args()
    print("| format | shape | bytes | s | MB | found |\n|---|---|---|---|---|---|")
    for line in measured(given.formats or list(SHAPES), 1 / given.n, given.limit):
        print(line, flush=True)


if __name__ == "__main__":
    main()
