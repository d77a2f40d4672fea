"""The frames of bytes that go through the pipe between the server and a worker.

A frame is a ``bytes`` object that a ``multiprocessing`` connection sends as a whole; nothing is
pickled. A unit is a text of the document with its inline codes, such as tags. The number of
characters, codes and units in a frame is limited, so that the server never holds Python's lock for
long to read a frame. The texts are sent as JSON, and the codes as numbers. Fields of a code that
only the worker needs (such as ``written``) are not sent.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dragoman.formats.units.document import Code, Target, Unit

_LENGTH = struct.Struct("<Q")
_FLAGS = ("opens", "closes", "apart_before", "apart_behind", "repeats")
_NUMBERS = 3
"""The number of integers that are sent for each code: its position, its flags, and its partner (-1
if it has none)."""
CHARACTERS, CODES, UNITS = 20_000, 2_000, 500
"""The largest numbers of characters, codes and units in one frame."""
PIECES = 10_000
"""The largest number of pieces of translations in one frame."""


def units_written(units: Iterable[Unit]) -> Iterator[bytes]:
    """Encode units as frames, several units in each."""
    part, length, codes = list[Unit](), 0, 0
    for one in units:
        if part and (
            length + len(one.text) > CHARACTERS
            or codes + len(one.tags) > CODES
            or len(part) == UNITS
        ):
            yield _part(part)
            part, length, codes = [], 0, 0
        part.append(one)
        length += len(one.text)
        codes += len(one.tags)
    if part:
        yield _part(part)


def _part(units: Sequence[Unit]) -> bytes:
    numbers = array("q")
    for one in units:
        for code in one.tags:
            flags = sum(1 << n for n, name in enumerate(_FLAGS) if getattr(code, name))
            partner = -1 if code.partner is None else code.partner
            numbers.extend((code.place, flags, partner))
    told = json.dumps([[one.text, one.ordered, len(one.tags)] for one in units]).encode()
    return _LENGTH.pack(len(told)) + told + numbers.tobytes()


def units_read(frame: bytes) -> Iterator[Unit]:
    """Yield the units of a frame. Their inline codes have only the fields that are sent in a
    frame."""
    (length,) = _LENGTH.unpack_from(frame)
    begin = _LENGTH.size + length
    numbers = memoryview(frame)[begin:].cast("q")
    place = 0
    for text, ordered, count in json.loads(frame[_LENGTH.size : begin]):
        end = place + count * _NUMBERS
        codes = tuple(_code(*numbers[n : n + _NUMBERS]) for n in range(place, end, _NUMBERS))
        place = end
        yield Unit(text, codes, ordered)


def _code(place: int, flags: int, partner: int) -> Code:
    told: dict[str, Any] = {name: bool(flags >> n & 1) for n, name in enumerate(_FLAGS)}
    return Code(place, partner=None if partner < 0 else partner, **told)


def texts_read(frame: bytes) -> Iterator[str]:
    """Yield the texts of the units of a frame."""
    (length,) = _LENGTH.unpack_from(frame)
    for text, *_ in json.loads(frame[_LENGTH.size : _LENGTH.size + length]):
        yield text


def targets_written(targets: Iterable[Target]) -> Iterator[bytes]:
    """Encode translations as frames of ``PIECES`` pieces; None ends each translation."""
    pieces: list[str | int | None] = []
    for target in targets:
        for one in (*target, None):
            pieces.append(one)
            if len(pieces) == PIECES:
                yield json.dumps(pieces).encode()
                pieces = []
    yield json.dumps(pieces).encode()


def targets_read(frames: Iterable[bytes]) -> list[Target]:
    """Decode the targets that ``targets_written`` encoded."""
    targets: list[Target] = []
    target: Target = []
    for frame in frames:
        for one in json.loads(frame):
            if one is None:
                targets.append(target)
                target = []
            else:
                target.append(one)
    return targets
