"""The frames of bytes that go through the pipe between the server and a worker.

A frame is a ``bytes`` object that a ``multiprocessing`` connection sends as a whole; nothing is
pickled. A unit is a text of the document with its inline codes, such as tags. A frame holds units
with some thousand characters and codes, as JSON, so that the server never holds Python's lock for
long to read a frame. Fields of a code that only the worker needs (such as ``written``) are not
sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from operator import attrgetter

from dragoman.formats.units.document import Code, Target, Unit

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
