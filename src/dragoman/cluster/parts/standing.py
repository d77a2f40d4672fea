"""Which parts stand, how all workers compute, and what is written beside the parts when all
stand."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TypeVar

from pydantic import TypeAdapter

from dragoman.base.wording import plural, shortened
from dragoman.cluster.parts.job import Job
from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.part import PART_NOTES, PartNote, note_name, notes_of
from dragoman.cluster.parts.plan import (
    NOTES,
    PARTS_PLANS,
    PLAN,
    VERSION,
    Asked,
    PartsPlan,
    check_same,
    make_plan,
)
from dragoman.stores.store import Stat, Store, StoreError

DONE = f"{NOTES}/done.json"
_WAY = f"{NOTES}/way.json"
BAD_LINES = f"{NOTES}/bad-lines.jsonl"
_TRIAL = f"{NOTES}/trial-"
Plan = TypeVar("Plan")
_AT_ONCE = 16
"""Requests for small objects."""
_BLOCK = 8 << 20


def plan_of(store: Store, asked: Asked, *, mixed: bool) -> tuple[PartsPlan, bool]:
    """The plan that stands, or a new one, and whether it is new. Errors: as ``stored_plan`` and
    ``check_same``."""
    plan, is_new = stored_plan(store, PARTS_PLANS, lambda: make_plan(asked))
    if not is_new:
        check_same(plan, asked, store.address, mixed=mixed)
    return plan, is_new


def stored_plan(
    store: Store, plans: TypeAdapter[Plan], make: Callable[[], Plan]
) -> tuple[Plan, bool]:
    """The plan that stands, or one that is made now, and whether it is new.

    Errors: ``StoreError`` for a plan that is damaged or of another version, for a store without
    conditional writes, and for a folder that holds something else.
    """
    found = _read(store, PLAN)
    if found is None:
        foreign = next((name for name, _ in store.names("")), None)
        if foreign is not None and not foreign.startswith(f"{NOTES}/"):
            raise StoreError(
                f"{store.address} holds {foreign}, and no plan: take a folder for it alone"
            )
        check_conditional(store)
        plan = make()
        if store.create(PLAN, plans.dump_json(plan)):
            return plan, True
        found = _read(store, PLAN) or b""
    where = store.place(PLAN)
    try:
        if json.loads(found)["version"] != VERSION:
            raise StoreError(f"{where} was made by another version of dragoman")
        return plans.validate_json(found), False
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{where} is damaged, or of another command "
            f"({shortened(' '.join(str(error).split()), 200)}). Take another folder, --to, or "
            "remove it, but only together with all parts beside it"
        ) from error


def check_conditional(store: Store) -> None:
    """Errors: ``StoreError`` where a second writer would not be refused: a part could be written
    twice."""
    name = f"{_TRIAL}{os.urandom(8).hex()}"
    store.create(name, b"first")
    refused = not store.create(name, b"second")
    stands = _read(store, name)
    store.remove(name)
    if not refused or stands != b"first":
        raise StoreError(
            f"{store.address} takes a second write of the same name, so that two workers could "
            "write one part. It needs conditional writes (If-None-Match): S3, GCS, Azure and "
            "current MinIO have them"
        )


def agreed_way(store: Store, own: Way) -> Way:
    """How all workers compute: the way that stands, or from now on this one."""
    store.create(_WAY, json.dumps(asdict(own)).encode())
    found = way_that_stands(store)
    assert found is not None, "it was created if it was not there"
    return found


def way_that_stands(store: Store) -> Way | None:
    """None before the first worker is ready."""
    found = _read(store, _WAY)
    if found is None:
        return None
    try:
        return Way(**json.loads(found))
    except (ValueError, TypeError) as error:
        raise StoreError(f"{store.place(_WAY)} is damaged: {error!r}") from error


def standing(job: Job) -> dict[int, Stat]:
    """The parts that the store lists. One that is written lately may be missing in the list."""
    numbers = {job.name(number): number for number in range(len(job.places))}
    return {numbers[name]: stat for name, stat in job.store.names("") if name in numbers}


def missing(job: Job, listed: Iterable[int]) -> list[int]:
    """The parts that do not stand; those that the list lacks are asked for one by one."""
    unlisted = sorted(set(range(len(job.places))).difference(listed))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda number: job.store.stat(job.name(number)), unlisted)
        return [number for number, stat in zip(unlisted, found, strict=True) if stat is None]


def was_done(job: Job, listed: Mapping[int, Stat]) -> dict[str, int] | None:
    """What ``finish`` wrote, where all parts stand as it found them; else None."""
    found = _read(job.store, DONE)
    if found is None or len(listed) < len(job.places):
        return None
    done = json.loads(found)
    for number, size in enumerate(done["sizes"]):
        if listed[number].size != size:
            raise StoreError(_damaged(job, number, listed[number].size, size))
    return {"lines": done["lines"], "bad": done["bad"]}


def finish(job: Job) -> dict[str, int]:
    """Check all parts against what was noted of them, gather their bad lines, and write that all
    is done. Errors: ``StoreError`` for a part that is not what it was."""
    notes = notes_of_all(job)
    lines: list[str] = []
    for note in notes:
        lines += [json.dumps(asdict(one), ensure_ascii=False) for one in note.bad_lines]
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
    return {"lines": sum(note.lines for note in notes), "bad": bad}


def notes_of_all(job: Job) -> Sequence[PartNote]:
    """What is noted about each part that stands, in order. Errors: ``StoreError``."""
    by_part: dict[str, list[str]] = {}
    for name, _ in job.store.names(f"{NOTES}/parts/"):
        by_part.setdefault(name.rpartition("-")[0] + "-", []).append(name)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(
            pool.map(
                lambda number: _note(job, number, by_part.get(notes_of(number), [])),
                range(len(job.places)),
            )
        )


def _note(job: Job, number: int, names: Sequence[str]) -> PartNote:
    name = job.name(number)
    stat = job.store.stat(name)
    if stat is None:
        raise StoreError(f"{job.store.place(name)} is not there any more")
    # Two that did the same part have noted it twice if their outputs differ; a list may be late.
    if len(names) != 1:
        names = [note_name(number, _digest(job.store, name, stat))]
    data = _read(job.store, names[0])
    if data is None:
        raise StoreError(
            f"{job.store.place(name)} is no part that was written here: nothing is noted of it in "
            f"{job.store.place(NOTES)}. Remove it, then give the same command again"
        )
    try:
        note = PART_NOTES.validate_json(data)
    except ValueError as error:
        raise StoreError(f"{job.store.place(names[0])} is damaged: {error}") from error
    if note.size != stat.size:
        raise StoreError(_damaged(job, number, stat.size, note.size))
    return note


def _damaged(job: Job, number: int, size: int, noted: int) -> str:
    return (
        f"{job.store.place(job.name(number))} has {plural(size, 'byte')}, and {noted:,} were "
        "written: it was changed. Remove it, then give the same command again"
    )


def _digest(store: Store, name: str, stat: Stat) -> str:
    found = hashlib.sha256()
    for start in range(0, stat.size, _BLOCK):
        found.update(store.read(name, start, min(_BLOCK, stat.size - start), stat.tag))
    return found.hexdigest()


def _read(store: Store, name: str) -> bytes | None:
    stat = store.stat(name)
    return None if stat is None else store.read(name, 0, stat.size)
