"""A verb's work on lines: the command that does its share of the parts, the model that each worker
makes, the output of a part, the list of parts that are done, and the final files next to them.

The note about a part is written before the part itself, under a name with the digest of the output:
so every part in the store has a note, whoever wrote it and whenever that process was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import metadata
from itertools import islice
from typing import Any

from pydantic import TypeAdapter

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural, shorten
from dragoman.cluster.driver import Command, Driver, duration
from dragoman.cluster.files import compress
from dragoman.cluster.kinds import InputKind, PartOfInput, Row
from dragoman.cluster.plan import (
    PARTS_PLANS,
    PLAN,
    Asked,
    PartsPlan,
    check_same,
    make_plan,
    stored_plan,
)
from dragoman.cluster.work import NOTES, Way, Work, way_that_stands
from dragoman.stores import InputChanged, Stat, Store, StoreError

WINDOW = 4000
"""The number of rows that the mapper gets at once."""
MOST_BAD = 1000
"""The most bad lines of a part that are listed; all are counted."""
_DIGITS = 16
DONE = f"{NOTES}/done.json"
BAD_LINES = f"{NOTES}/bad-lines.jsonl"
_AT_ONCE = 16
"""The most parallel requests for small objects."""
_SHOWN = 1_000
"""The most characters of a list of names in a message."""

Texts = tuple[str, ...]
"""The texts of one row: a text, or a source and its translation."""


@dataclass(frozen=True)
class LineMapper:
    """A model that is ready, as functions."""

    outputs: Callable[[Sequence[Texts]], Iterable[str]]
    """Maps rows to the output of each without its last line end. Errors: ``DragomanError`` for a
    row that it cannot process."""
    precision: str
    level: str
    description: str
    """One line for people: what runs the model on this machine, and why."""
    seen: Callable[[Sequence[Texts], Sequence[str]], Any] = lambda rows, outputs: None
    """Maps rows and their outputs to what is noted of them, as JSON can hold it."""


MakeMapper = Callable[[str], LineMapper]
"""Makes a mapper in the named precision; "": in the fastest. It is sent to other processes and
machines, so it is a function of a module, or a ``partial`` of one."""


@dataclass(frozen=True)
class BadLine:
    """A line that could not be read correctly."""

    place: str
    line: int
    reason: str


@dataclass(frozen=True)
class PartNote:
    """The note about a finished part."""

    number: int
    name: str
    lines: int
    size: int
    """The size of the stored output, in bytes."""
    digest: str
    """The SHA-256 of the stored output, in hex."""
    bad: int
    bad_lines: tuple[BadLine, ...]
    way: str
    """A description of the way in which it was computed."""
    seen: Any = None
    """The notes that the mapper returned for the part."""


PART_NOTES = TypeAdapter(PartNote)
"""Writes and reads notes as JSON."""


@dataclass(frozen=True)
class Job(Work):
    """A plan, the store of its parts, and the mapper of their lines."""

    plan: PartsPlan
    make: MakeMapper

    @cached_property
    def parts(self) -> list[tuple[InputKind, PartOfInput]]:
        """The parts of the plan, by number."""
        return self.plan.parts

    def name(self, number: int) -> str:
        """For example ``part-00017.jsonl.zst``: sorted by name, parts are in order of input."""
        kind, part = self.parts[number]
        digits = max(5, len(str(len(self.parts) - 1)))
        endings = filter(None, (kind.ending, part.files[0].compression))
        return f"part-{number:0{digits}}.{'.'.join(endings)}"

    def place(self, number: int) -> str:
        return self.parts[number][1].place

    def lines(self, number: int) -> int:
        return self.parts[number][1].stretches[0].lines

    def begin(self) -> tuple[LineMapper, Way, str]:
        """Make the model, computing in the job's way if this machine can."""
        way = self.way
        if way is not None and way.level:
            from dragoman.native import library, loader

            if way.level in loader.levels_offered():
                os.environ["DRAGOMAN_NATIVE"] = way.level
                library.reset()
        mapper = self.make("" if way is None else way.precision)
        own = Way(mapper.precision, mapper.level, version("dragoman"), version("torch"))
        return mapper, own, mapper.description

    def do(self, number: int, tools: LineMapper, way: Way) -> tuple[Any, bool]:
        kind, part = self.parts[number]
        rows, outputs, bad = _map(kind, part, tools)
        data = compress(kind.encode(part, rows, outputs), part.files[0].compression)
        digest, name = hashlib.sha256(data).hexdigest(), self.name(number)
        both = zip(rows, outputs, strict=True)
        good = [(row.texts, output) for row, output in both if row.texts and output is not None]
        seen = tools.seen([texts for texts, _ in good], [output for _, output in good])
        note = PartNote(
            number, name, len(rows), len(data), digest, len(bad), tuple(bad[:MOST_BAD]),
            way.words, seen,
        )  # fmt: skip
        self.store.create(_note_name(number, digest), PART_NOTES.dump_json(note))
        return seen, self.store.create(name, data)


def version(name: str) -> str:
    """The version of an installed distribution; torch's without its build."""
    return metadata.version(name).partition("+")[0]


def _note_name(number: int, digest: str) -> str:
    return f"{_notes_of(number)}{digest[:_DIGITS]}.json"


def _notes_of(number: int) -> str:
    """The common prefix of the names of all notes about a part."""
    return f"{NOTES}/parts/{number:07}-"


def _map(
    kind: InputKind, part: PartOfInput, mapper: LineMapper
) -> tuple[list[Row], list[str | None], list[BadLine]]:
    rows: list[Row] = []
    outputs: list[str | None] = []
    bad: list[BadLine] = []
    given = iter(kind.rows(part))
    while window := list(islice(given, WINDOW)):
        results = iter(_each([row for row in window if row.texts is not None], mapper))
        for row in window:
            output, reason = next(results) if row.texts is not None else (None, row.bad)
            reason = reason or row.bad
            if output is None and reason:
                row = Row(row.number, None, reason, row.given)
            if reason:
                bad.append(BadLine(part.files[0].place, row.number, reason))
            rows.append(row)
            outputs.append(output)
    if len(rows) != part.stretches[0].lines:
        raise InputChanged(f"{part.place} has changed: it now has {len(rows):,} lines")
    return rows, outputs, bad


def _each(rows: Sequence[Row], mapper: LineMapper) -> Iterator[tuple[str | None, str]]:
    """The output of each row, or the reason why there is none: if rows are refused, they are halved
    until the bad one is alone."""
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
    """Remove the line's number in its window from a message about one line."""
    for beginning in ("line 1: ", "line 1 "):
        reason = reason.removeprefix(beginning)
    return reason


def standing(job: Job) -> dict[int, Stat]:
    """The parts that the store lists. A list may lack parts that were written lately."""
    numbers = {job.name(number): number for number in range(len(job.parts))}
    return {numbers[name]: stat for name, stat in job.store.names("") if name in numbers}


def missing(job: Job, listed: Iterable[int]) -> list[int]:
    """The parts that are not done; those that the list lacks are checked one by one."""
    unlisted = sorted(set(range(len(job.parts))).difference(listed))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        stats = pool.map(lambda number: job.store.stat(job.name(number)), unlisted)
        return [number for number, stat in zip(unlisted, stats, strict=True) if stat is None]


def was_done(job: Job, listed: Mapping[int, Stat]) -> int | None:
    """The number of bad lines that ``finish`` counted, if all parts exist as they were then;
    otherwise None."""
    content = job.store.content(DONE)
    if content is None or len(listed) < len(job.parts):
        return None
    done = json.loads(content)
    for number, size in enumerate(done["sizes"]):
        if listed[number].size != size:
            raise StoreError(_damage_message(job, number, listed[number].size, size))
    return int(done["bad"])


def finish(job: Job) -> int:
    """Check all parts against their notes, collect their bad lines, and write that all is done.
    Returns the number of bad lines. Errors: ``StoreError`` for a part that was changed."""
    notes = notes_of_all(job)
    lines: list[str] = []
    for note in notes:
        lines += [json.dumps(asdict(bad_line), ensure_ascii=False) for bad_line in note.bad_lines]
    bad = sum(note.bad for note in notes)
    if bad:
        job.store.create(BAD_LINES, "".join(f"{line}\n" for line in lines).encode())
    done = {
        "plan": job.plan.digest,
        "lines": sum(note.lines for note in notes),
        "bad": bad,
        "ways": sorted({note.way for note in notes}),
        "sizes": [note.size for note in notes],
        "digests": [note.digest for note in notes],
    }
    job.store.create(DONE, json.dumps(done, ensure_ascii=False).encode())
    return bad


def notes_of_all(job: Job) -> list[PartNote]:
    """The notes about all parts, in order. Errors: ``StoreError``."""
    by_part: dict[str, list[str]] = {}
    for name, _ in job.store.names(f"{NOTES}/parts/"):
        by_part.setdefault(name.rpartition("-")[0] + "-", []).append(name)
    numbers = range(len(job.parts))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [*pool.map(lambda n: _note(job, n, by_part.get(_notes_of(n), [])), numbers)]


def _note(job: Job, number: int, names: Sequence[str]) -> PartNote:
    name = job.name(number)
    stat = job.store.stat(name)
    if stat is None:
        raise StoreError(f"{job.store.place(name)} no longer exists")
    # Two workers that did the same part wrote two notes if their outputs differ; a list may be
    # late.
    if len(names) != 1:
        names = [_note_name(number, _digest(job.store, name, stat))]
    data = job.store.content(names[0])
    if data is None:
        raise StoreError(
            f"{job.store.place(name)} is not a part that was written here, because "
            f"{job.store.place(NOTES)} does not list it. Remove it, then run the same command again"
        )
    try:
        note = PART_NOTES.validate_json(data)
    except ValueError as error:
        raise StoreError(f"{job.store.place(names[0])} is damaged: {error}") from error
    if note.size != stat.size:
        raise StoreError(_damage_message(job, number, stat.size, note.size))
    return note


def _damage_message(job: Job, number: int, size: int, noted: int) -> str:
    return (
        f"{job.store.place(job.name(number))} has {plural(size, 'byte')}, and {noted:,} were "
        "written, so it was changed. Remove it, then run the same command again"
    )


def _digest(store: Store, name: str, stat: Stat) -> str:
    digest = hashlib.sha256()
    for block in store.blocks(name, stat):
        digest.update(block)
    return digest.hexdigest()


def run(
    command: Command, asked: Asked, make: MakeMapper, *, mixed: bool = False,
    seen: Callable[[Any], None] = lambda seen: None,
) -> None:  # fmt: skip
    """Map the lines of the inputs, or continue. ``mixed``, ``seen``: as in ``Driver``.

    Errors: ``DragomanError``, also if parts were given up.
    """
    share, store, say = command.share, command.store, command.console.say
    began = time.monotonic()
    plan, is_new = stored_plan(
        store, PARTS_PLANS, lambda: make_plan(asked),
        lambda plan: check_same(plan, asked, store.address, mixed=mixed),
    )  # fmt: skip
    job = Job(command.to, plan, make, way=way_that_stands(store))
    total = len(job.parts)
    if is_new:
        took = duration(time.monotonic() - began)
        say(f"{plural(plan.lines, 'line')} in {plural(total, 'part')}, counted in {took}")
    if share.number == 0:
        return
    listed = standing(job)
    bad = was_done(job, listed)
    if bad is not None:
        say(f"all {plural(total, 'part is', 'parts are')} complete already. There is nothing to do")
        _tell_bad(job, bad, say)
        return
    of_share = range(share.number - 1, total, share.of)
    mine = [number for number in of_share if number not in listed]
    if mine:
        if len(mine) < len(of_share):
            say(f"{len(of_share) - len(mine):,} of {plural(len(of_share), 'part')} are complete")
        try:
            Driver(command, job, mine, of_share, mixed=mixed, seen=seen).run()
        except DragomanError:
            # If no model could be opened, the plan must not block the next command.
            if is_new and way_that_stands(store) is None:
                store.remove(PLAN)
            raise
    lacking = missing(job, standing(job))
    own = [job.name(number) for number in lacking if share.has(number)]
    if own:
        count, names = plural(len(own), "part is", "parts are"), shorten(", ".join(own), _SHOWN)
        raise DragomanError(
            f"{count} missing in {command.to}, although all were written: {names}. Run the same "
            "command to create them again"
        )
    if lacking:
        count = plural(len(lacking), "part", "parts")
        say(f"all parts of share {command.part} are complete; {count} of other shares are missing")
        return
    _tell_bad(job, finish(job), say)
    store.sweep()
    say(f"all {plural(total, 'part is', 'parts are')} complete: {command.to}")


def _tell_bad(job: Job, bad: int, say: Callable[[str], None]) -> None:
    if bad:
        say(
            f"{plural(bad, 'line was', 'lines were')} not read correctly: "
            f"{job.store.place(BAD_LINES)}"
        )
