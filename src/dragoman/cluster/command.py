"""One command that does its share of the parts: ``--on local:4``, ``--part 17/500``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural, shorten
from dragoman.cluster.driver import Driver, ProgressConsole, duration
from dragoman.cluster.lines import BAD_LINES, Job, MakeMapper, finish, missing, standing, was_done
from dragoman.cluster.plan import PARTS_PLANS, PLAN, Asked, check_same, make_plan, stored_plan
from dragoman.cluster.work import Work, Workers, actors, processes, way_that_stands
from dragoman.stores import Store, open_store, whole_address

_PLACE = re.compile(r"(local|ray)(?::([1-9][0-9]{0,4}))?\Z")
_SHOWN = 1_000
"""The most characters of a list of names in a message."""
_SHARE = re.compile(r"(\d{1,7})/([1-9]\d{0,6})\Z")

Place = tuple[str, int | None]
"""The kind of the workers, and their number; None for as many as there are cores."""


@dataclass(frozen=True)
class Share:
    """The parts of a command: every ``of``-th, from ``number`` (1 to ``of``) on; with number 0, it
    only makes the plan."""

    number: int = 1
    of: int = 1

    def has(self, part: int) -> bool:
        """True if a part belongs to the share."""
        return part % self.of == self.number - 1


def share_of(given: str | None) -> Share:
    """Parse a share of the parts, such as ``--part 17/500``. Errors: ``DragomanError``."""
    if given is None:
        return Share()
    match = _SHARE.match(given)
    if match is None or int(match[1]) > int(match[2]):
        raise DragomanError(
            f"--part {given}: use PART/PARTS, such as 1/500 to 500/500. 0/500 only creates the plan"
        )
    return Share(int(match[1]), int(match[2]))


def place_of(given: str | None) -> Place:
    """Parse ``--on local:4``; None means one process. Errors: ``DragomanError``."""
    match = _PLACE.match(given or "local:1")
    if match is None:
        raise DragomanError(f"--on {given}: use local, local:4, ray or ray:40")
    return match[1], int(match[2]) if match[2] else None


def workers_at(place: Place) -> Workers:
    """The workers of a place. Errors: ``DragomanError`` if Ray is not installed."""
    name, number = place
    return actors(number) if name == "ray" else processes(number)


class Command:
    """A command in parts: its output, its workers, and its share of the parts."""

    def __init__(self, to: str, on: str | None, part: str | None, console: ProgressConsole) -> None:
        """Read the options. Errors: ``DragomanError`` for invalid options."""
        self.part, self.share, self._place = part, share_of(part), place_of(on)
        self.to = whole_address(to)
        self.console = console

    @cached_property
    def store(self) -> Store:
        """The store to which the parts are written."""
        return open_store(self.to)

    def drive(
        self, work: Work, parts: Sequence[int], of_command: Sequence[int], *, mixed: bool = False,
        seen: Callable[[Any], None] = lambda seen: None,
    ) -> None:  # fmt: skip
        """Do parts, as ``Driver``. Errors: ``DragomanError``."""
        workers = workers_at(self._place)
        Driver(work, workers, parts, of_command, self.console, mixed=mixed, seen=seen).run()


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
            command.drive(job, mine, of_share, mixed=mixed, seen=seen)
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
