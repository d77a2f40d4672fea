"""One command, from what is asked to parts that stand: ``--on local:4``, ``--part 17/500``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman.cluster.driver import CommandOutcome, Driver
from dragoman.cluster.parts.job import Job, Work
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
from dragoman.cluster.progress import ProgressLine, duration, in_figures
from dragoman.cluster.workers import Workers
from dragoman.errors import DragomanError
from dragoman.native.processor import cores
from dragoman.plural import plural
from dragoman.shortened import shortened
from dragoman.stores.folder import FolderStore
from dragoman.stores.opened import is_remote, opened, split_address

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
    to = wanted.to.rstrip("/") if is_remote(wanted.to) else split_address(wanted.to)[0]
    if is_remote(to):
        split_address(to)
    store = opened(to)
    began = time.monotonic()
    plan, is_new = plan_of(store, wanted.asked, mixed=wanted.mixed)
    job = Job(plan, to, wanted.make, way_that_stands(store))
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
    mine = [n for n in range(total) if n % share.of == share.number - 1 and n not in listed]
    if mine:
        workers = workers_at(place)
        lines = [job.lines(number) for number in range(total)]
        of_share = range(share.number - 1, total, share.of)
        progress = ProgressLine(
            sum(lines[n] for n in of_share),
            sum(lines[n] for n in of_share if n in listed),
            write,
            terminal,
        )
        if len(mine) < len(of_share):
            say(f"{len(of_share) - len(mine):,} of {plural(len(of_share), 'part')} stand already")
        driver = Driver(job, workers, mine, progress, say, mixed=wanted.mixed)
        try:
            tell(driver.run(), progress, say)
            for note in driver.outcome.done:
                wanted.seen(note.seen)
        except DragomanError:
            # Where no model could be opened, the plan is not to be in the way of the next command.
            if is_new and way_that_stands(store) is None:
                store.remove(PLAN)
            raise
        if driver.outcome.given_up:
            raise DragomanError(given_up(job, driver.outcome))
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


def tell(outcome: CommandOutcome, progress: ProgressLine, say: Callable[[str], None]) -> None:
    """What a driver did, in one line."""
    lines = sum(note.lines for note in outcome.done)
    told = f"{plural(lines, 'line')} in {duration(progress.seconds)}"
    if lines and progress.seconds:
        told += f", {in_figures(lines / progress.seconds)} lines/s"
    if outcome.died:
        told += f"; {plural(outcome.died, 'worker was', 'workers were')} replaced"
    if outcome.stood:
        told += f"; {plural(outcome.stood, 'part', 'parts')} somebody else did meanwhile"
    say(told)


def _tell_bad(job: Job, bad: int, say: Callable[[str], None]) -> None:
    if bad:
        say(
            f"{plural(bad, 'line was', 'lines were')} not read as they should be: "
            f"{job.store.place(BAD_LINES)}"
        )


def given_up(job: Work, outcome: CommandOutcome) -> str:
    """What is said of parts that are given up."""
    named = []
    for number, how in sorted(outcome.given_up.items()):
        named.append(f"{job.name(number)} ({job.place(number)}: {how})")
    count = plural(len(named), "part was", "parts were")
    return (
        f"{count} given up, and all others stand: {'; '.join(named)}. The same command tries them "
        "again"
    )
