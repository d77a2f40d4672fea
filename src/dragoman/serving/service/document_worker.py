"""A worker: the program of a process that reads and writes documents for a server.

Requests and answers go through a pipe as frames: ``bytes`` objects that a ``multiprocessing``
connection sends as a whole; nothing is pickled. A unit is a text of the document with its inline
codes, such as tags. A frame holds units with some thousand characters and codes, as JSON, so that
the server never holds Python's lock for long to read a frame. Fields of a code that only the worker
needs (such as ``written``) are not sent.

The process ends after a document that took much memory, and when the server ends.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from operator import attrgetter
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.formats.catalogue import fit_document, format_of
from dragoman.formats.csv_cells import columns_of
from dragoman.formats.units.document import BadDocument, Code, OutputOptions, Target, Unit
from dragoman.native.allocator import peak_bytes

_NICE = 5
"""The niceness of a worker: documents have a lower priority than sentences."""
_FIELDS = ("place", "opens", "closes", "apart_before", "apart_behind", "partner", "repeats")
"""The fields of an inline code that are sent."""
CHARACTERS, CODES, UNITS = 20_000, 2_000, 500
"""The largest numbers of characters, codes and units in one frame."""
PIECES = 10_000
"""The largest number of pieces of translations in one frame."""


def units_written(units: Iterable[Unit]) -> Iterator[bytes]:
    """Encode units as frames, several units in each."""
    part, length, codes = list[Unit](), 0, 0
    for unit in units:
        if part and (
            length + len(unit.text) > CHARACTERS
            or codes + len(unit.tags) > CODES
            or len(part) == UNITS
        ):
            yield _encode(part)
            part, length, codes = [], 0, 0
        part.append(unit)
        length += len(unit.text)
        codes += len(unit.tags)
    if part:
        yield _encode(part)


def _encode(units: list[Unit]) -> bytes:
    rows = [[unit.text, unit.ordered, list(map(attrgetter(*_FIELDS), unit.tags))] for unit in units]
    return json.dumps(rows).encode()


def units_read(frame: bytes) -> Iterator[Unit]:
    """Yield the units of a frame. Their inline codes have only the fields that are sent in a
    frame."""
    for text, ordered, codes in json.loads(frame):
        tags = (Code(**dict(zip(_FIELDS, values, strict=True))) for values in codes)
        yield Unit(text, tuple(tags), ordered)


def texts_read(frame: bytes) -> Iterator[str]:
    """Yield the texts of the units of a frame."""
    for text, *_ in json.loads(frame):
        yield text


def targets_written(targets: Iterable[Target]) -> Iterator[bytes]:
    """Encode translations as frames of ``PIECES`` pieces; None ends each translation."""
    pieces: list[str | int | None] = []
    for target in targets:
        for piece in (*target, None):
            pieces.append(piece)
            if len(pieces) == PIECES:
                yield json.dumps(pieces).encode()
                pieces = []
    yield json.dumps(pieces).encode()


def targets_read(frames: Iterable[bytes]) -> list[Target]:
    """Decode the targets that ``targets_written`` encoded."""
    targets: list[Target] = []
    target: Target = []
    for frame in frames:
        for piece in json.loads(frame):
            if piece is None:
                targets.append(target)
                target = []
            else:
                target.append(piece)
    return targets


def main() -> None:
    """Answer the requests that come through the pipe. The arguments of the process are the file
    number of the pipe, the largest number of bytes of memory that the process may use, and the
    number of bytes above which it accepts no other document."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the server handles the signals, and ends the worker
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    number, most, kept = map(int, sys.argv[1:])
    _may_take(most)
    with suppress(OSError):
        os.nice(_NICE)
    gc.disable()  # a document has many small objects and no reference cycles
    with suppress(EOFError, ConnectionError), Connection(number) as pipe:
        while _work(pipe, kept):
            gc.collect()


def _may_take(most: int | None) -> None:
    """Limit the memory of the process, in bytes; None: up to the system's limit."""
    with suppress(OSError, ValueError):  # not every system allows it
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard if most is None else most, hard))


def _work(pipe: Connection, kept: int) -> bool:
    """Read or write one document; returns True if the worker accepts another."""
    wanted = json.loads(pipe.recv_bytes())
    try:
        data = pipe.recv_bytes()
        targets = targets_read(pipe.recv_bytes() for _ in range(wanted["frames"]))
        values, frames = _answer(data, wanted, targets)
    except DragomanError as error:
        values, frames = {"problem": str(error)}, []
    except MemoryError:
        values, frames = {"memory": True}, []
    if "memory" in values:
        _may_take(None)  # the answer needs some memory too
        pipe.send_bytes(json.dumps({**values, "frames": 0, "goes_on": False}).encode())
        return False
    goes_on = peak_bytes() <= kept
    pipe.send_bytes(json.dumps({**values, "frames": len(frames), "goes_on": goes_on}).encode())
    for frame in frames:
        pipe.send_bytes(frame)
    return goes_on


def _answer(
    data: bytes, wanted: dict[str, Any], targets: list[Target]
) -> tuple[dict[str, Any], list[bytes]]:
    form = format_of(data, wanted["name"])
    document = form.read(data, wanted["name"])
    if wanted["columns"] is not None:
        document = document.in_columns(columns_of(wanted["columns"]))
    source = document.source_language
    document, doubts = fit_document(document, wanted["source"] or source, wanted["target"])
    if wanted["language"] is not None:
        made = document.join(targets, OutputOptions(wanted["language"]))
        if len(made) > wanted["most"]:
            raise BadDocument(
                f"the translation of {wanted['name']} has {len(made):,} bytes, and this server "
                f"keeps at most {wanted['most']:,} for a download. Split the document into parts"
            )
        return {}, [made]
    units = document.units
    characters = sum(len(unit.text) for unit in units)
    values = {
        "count": len(units), "characters": characters, "media": form.media,
        "source": source, "doubts": doubts,
    }  # fmt: skip
    return values, [] if characters > wanted["most"] else list(units_written(units))
