"""A worker: the program of a process that reads and writes documents for a server.

Requests and answers go through a pipe. The process ends after a document that took much memory, and
when the server ends.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.formats.catalogue import format_of
from dragoman.formats.csv_cells import columns_of
from dragoman.formats.files import fit_document
from dragoman.formats.units.document import BadDocument, OutputOptions, Target
from dragoman.native.allocator import peak_bytes
from dragoman.serving.document_workers.frames import targets_read, units_written

_NICE = 5
"""The niceness of a worker: documents have a lower priority than sentences."""


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
