"""One command, from what is asked to parts that stand: ``--on local:4``, ``--part 17/500``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural, shortened
from dragoman.cluster.driver import Driver
from dragoman.cluster.parts.job import Job
from dragoman.cluster.parts.mapper import MakeMapper
from dragoman.cluster.parts.plan import PLAN, Asked
from dragoman.cluster.parts.standing import (
    BAD_LINES,
    finish,
    missing,
    plan_of,
    standing,
    was_done,
    way_that_stands,
)
from dragoman.cluster.progress import duration
from dragoman.cluster.workers import Workers
from dragoman.native.processor import cores
from dragoman.stores.folder import FolderStore
from dragoman.stores.opened import opened, whole_address

_PLACE = re.compile(r"(local|ray)(?::([1-9][0-9]{0,4}))?\Z")
_SHOWN = 1_000
"""Characters of names that are told."""
_SHARE = re.compile(r"(\d{1,7})/([1-9]\d{0,6})\Z")


@dataclass(frozen=True)
class Share:
    """Which parts a command does: every ``of``-th, from ``number`` (1 to ``of``) on; number 0
    makes the plan alone."""

    number: int = 1
    of: int = 1


def share_of(given: str | None) -> Share:
    """Of ``--part 17/500``. Errors: ``DragomanError``."""
    if given is None:
        return Share()
    found = _SHARE.match(given)
    if found is None or int(found[1]) > int(found[2]):
        raise DragomanError(
            f"--part {given}: give a number and how many there are, from 1/500 to 500/500; 0/500 "
            "makes the plan alone"
        )
    return Share(int(found[1]), int(found[2]))


def place_of(given: str | None) -> tuple[str, int | None]:
    """Of ``--on local:4``: where workers are, and how many, None for as many as there are cores;
    without it one process. Errors: ``DragomanError``."""
    found = _PLACE.match(given or "local:1")
    if found is None:
        raise DragomanError(f"--on {given}: give local, local:4, ray or ray:40")
    return found[1], int(found[2]) if found[2] else None


def workers_at(place: tuple[str, int | None]) -> Workers:
    """Those of a place. Errors: ``DragomanError`` where Ray is not there."""
    name, number = place
    if name == "ray":
        from dragoman.cluster.actors import Actors

        return Actors(number)
    from dragoman.cluster.workers import Processes

    return Processes(number or cores(), cores())


@dataclass(frozen=True)
class CommandOptions:
    """What a command is to do."""

    asked: Asked
    to: str
    make: MakeMapper
    on: str | None
    part: str | None
    mixed: bool
    seen: Callable[[Any], None] = lambda seen: None
    """Gets what was seen in each part that this command does (``PartNote.seen``)."""


def run(
    wanted: CommandOptions,
    say: Callable[[str], None],
    write: Callable[[str], object],
    *,
    terminal: bool,
) -> None:
    """Do it, or go on with it. ``say``: writes a line for people; ``write``: text as it is.

    Errors: ``DragomanError``, also where parts were given up.
    """
    share, place = share_of(wanted.part), place_of(wanted.on)
    to = whole_address(wanted.to)
    store = opened(to)
    began = time.monotonic()
    plan, is_new = plan_of(store, wanted.asked, mixed=wanted.mixed)
    job = Job(to, plan, wanted.make, way=way_that_stands(store))
    total = len(job.places)
    if is_new:
        took = duration(time.monotonic() - began)
        say(f"{plural(plan.lines, 'line')} in {plural(total, 'part')}, counted in {took}")
    if share.number == 0:
        return
    listed = standing(job)
    done = was_done(job, listed)
    if done is not None:
        say(f"all {plural(total, 'part stands', 'parts stand')} already: nothing to do")
        _tell_bad(job, done["bad"], say)
        return
    of_share = range(share.number - 1, total, share.of)
    mine = [number for number in of_share if number not in listed]
    if mine:
        if len(mine) < len(of_share):
            say(f"{len(of_share) - len(mine):,} of {plural(len(of_share), 'part')} stand already")
        driver = Driver(
            job, workers_at(place), mine, of_share, say, write,
            terminal=terminal, mixed=wanted.mixed, seen=wanted.seen,
        )  # fmt: skip
        try:
            driver.run()
        except DragomanError:
            # Where no model could be opened, the plan is not to be in the way of the next command.
            if is_new and way_that_stands(store) is None:
                store.remove(PLAN)
            raise
    lacking = missing(job, standing(job))
    own = [job.name(number) for number in lacking if number % share.of == share.number - 1]
    if own:
        count, names = plural(len(own), "part is", "parts are"), shortened(", ".join(own), _SHOWN)
        raise DragomanError(
            f"{count} missing in {to}, though all were written: {names}. Something has removed "
            "them. The same command makes them again"
        )
    if lacking:
        count = plural(len(lacking), "part", "parts")
        say(f"the parts of {wanted.part} stand; {count} of other shares are missing yet")
        return
    _tell_bad(job, finish(job)["bad"], say)
    if isinstance(store, FolderStore):
        store.sweep()
    say(f"all {plural(total, 'part stands', 'parts stand')}: {to}")


def _tell_bad(job: Job, bad: int, say: Callable[[str], None]) -> None:
    if bad:
        say(
            f"{plural(bad, 'line was', 'lines were')} not read as they should be: "
            f"{job.store.place(BAD_LINES)}"
        )
