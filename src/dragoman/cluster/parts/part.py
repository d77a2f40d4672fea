"""One part, from the rows of its input to its output in the store.

The note about a part is written before the part itself, under a name that holds the digest of the
output: so a part that stands has a note, whoever wrote it and whenever that process was killed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import TypeAdapter

from dragoman.base.errors import DragomanError
from dragoman.cluster.inputs.compression import compressed
from dragoman.cluster.inputs.lines_and_rows import InputKind, PartOfInput, Row
from dragoman.cluster.parts.mapper import LineMapper, Way
from dragoman.cluster.parts.plan import NOTES, PartsPlan
from dragoman.stores.store import InputChanged, Store

WINDOW = 4000
"""Rows that the mapper gets at once."""
MOST_BAD = 1000
"""Bad lines of a part that are named; all are counted."""
_DIGITS = 16


@dataclass(frozen=True)
class BadLine:
    """A line that could not be read as it should."""

    place: str
    line: int
    reason: str


@dataclass(frozen=True)
class PartNote:
    """What is noted about a part."""

    number: int
    name: str
    lines: int
    size: int
    """Bytes of the output, as they are stored."""
    digest: str
    """SHA-256 of them, in hex."""
    bad: int
    bad_lines: tuple[BadLine, ...]
    way: str
    """How it was computed, in words."""
    seen: Any = None
    """What the mapper has seen in it."""


PART_NOTES = TypeAdapter(PartNote)
"""Writes and reads them, as JSON."""


def note_name(number: int, digest: str) -> str:
    """Where it is noted."""
    return f"{notes_of(number)}{digest[:_DIGITS]}.json"


def notes_of(number: int) -> str:
    """How the names of all notes about a part begin."""
    return f"{NOTES}/parts/{number:07}-"


def do_part(
    plan: PartsPlan, number: int, place: tuple[int, int], mapper: LineMapper, way: Way, store: Store
) -> tuple[PartNote, bool]:
    """Do a part and commit it: what is noted, and whether it is this one that stands.

    Errors: ``InputChanged``, ``StoreError``.
    """
    kind, part = plan.part(place)
    rows, outputs, bad = _mapped(kind, part, mapper)
    data = compressed(kind.written(part, rows, outputs), part.compressions[0])
    digest = hashlib.sha256(data).hexdigest()
    name = plan.name(number, place)
    good = [(r.texts, o) for r, o in zip(rows, outputs, strict=True) if r.texts and o is not None]
    seen = mapper.seen([texts for texts, _ in good], [output for _, output in good])
    note = PartNote(
        number, name, len(rows), len(data), digest, len(bad), tuple(bad[:MOST_BAD]), way.words, seen
    )
    store.create(note_name(number, digest), PART_NOTES.dump_json(note))
    return note, store.create(name, data)


def _mapped(
    kind: InputKind, part: PartOfInput, mapper: LineMapper
) -> tuple[list[Row], list[str | None], list[BadLine]]:
    rows: list[Row] = []
    outputs: list[str | None] = []
    bad: list[BadLine] = []
    given = iter(kind.rows(part))
    while window := list(islice(given, WINDOW)):
        found = iter(_each([row for row in window if row.texts is not None], mapper))
        for row in window:
            output, reason = next(found) if row.texts is not None else (None, row.bad)
            reason = reason or row.bad
            if output is None and reason:
                row = Row(row.number, None, reason, row.given)
            if reason:
                bad.append(BadLine(part.files[0].place, row.number, reason))
            rows.append(row)
            outputs.append(output)
    if len(rows) != part.stretches[0].lines:
        raise InputChanged(f"{part.place}: there are {len(rows):,} lines now")
    return rows, outputs, bad


def _each(rows: Sequence[Row], mapper: LineMapper) -> Iterator[tuple[str | None, str]]:
    """The output of each row, or why there is none: rows of which one is refused are halved until
    it is found."""
    if not rows:
        return
    try:
        outputs = list(mapper.outputs([row.texts for row in rows if row.texts is not None]))
    except DragomanError as error:
        if len(rows) == 1:
            yield None, _without_number(str(error))
            return
        half = len(rows) // 2
        yield from _each(rows[:half], mapper)
        yield from _each(rows[half:], mapper)
        return
    assert len(outputs) == len(rows), "an output for each row"
    for output in outputs:
        yield output, ""


def _without_number(reason: str) -> str:
    """Messages about one line begin with its number among those that were given."""
    for beginning in ("line 1: ", "line 1 "):
        reason = reason.removeprefix(beginning)
    return reason
