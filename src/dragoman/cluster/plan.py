"""What a folder of parts is made of: the inputs as they were, the run, and how lines are cut.

The plan is written once, and whoever comes later takes it as it is. If it is of other inputs, of
another run or of other options, nothing is done: the parts of two plans never mix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter

from dragoman.base.errors import DataError, RunError
from dragoman.base.wording import shortened
from dragoman.cluster.files import File
from dragoman.cluster.kinds import KINDS, KindName, check_count, cut_together, kind_of
from dragoman.cluster.rows import Fields, InputKind, PartOfInput, Stretch
from dragoman.cluster.work import NOTES, check_conditional
from dragoman.stores.store import InputChanged, Stat, Store, StoreError

PLAN = f"{NOTES}/plan.json"
VERSION = 3
"""Of what is written of a plan."""
Plan = TypeVar("Plan")


@dataclass(frozen=True)
class Asked:
    """What a command asks for, without looking into its inputs."""

    verb: str
    runs: Mapping[str, str]
    """Run folder -> fingerprint of all that it computes with."""
    options: Mapping[str, Any]
    """Those that say what the output is."""
    lines: int
    """Of a part, at most."""
    fields: Fields
    files: tuple[tuple[File, ...], ...]
    """One input each; of several files where lines belong together."""
    language: str | None = None
    """Of the text, by which it is judged whether a file holds lines of text; None: every file is
    taken as it is."""


@dataclass(frozen=True)
class Input:
    """One file, or several whose lines belong together, cut into parts."""

    files: tuple[File, ...]
    kind: KindName
    stretches: tuple[tuple[Stretch, ...], ...]
    """Of each part, those of each file."""


@dataclass(frozen=True)
class PartsPlan:
    """All parts of all inputs."""

    asked: Asked
    inputs: tuple[Input, ...]
    version: int = VERSION

    @property
    def parts(self) -> list[tuple[InputKind, PartOfInput]]:
        """All parts in order, each with the kind that reads it."""
        fields = self.asked.fields
        return [
            (KINDS[one.kind], PartOfInput(one.files, stretches, fields))
            for one in self.inputs
            for stretches in one.stretches
        ]

    @property
    def lines(self) -> int:
        """Of all parts."""
        return sum(part[0].lines for one in self.inputs for part in one.stretches)

    @property
    def digest(self) -> str:
        """SHA-256 of what is written of it, in hex."""
        return hashlib.sha256(PARTS_PLANS.dump_json(self)).hexdigest()


PARTS_PLANS = TypeAdapter(PartsPlan)
"""Writes and reads them, as JSON."""


def stored_plan(
    store: Store,
    plans: TypeAdapter[Plan],
    make: Callable[[], Plan],
    check: Callable[[Plan], None],
) -> tuple[Plan, bool]:
    """The plan that stands, once ``check`` has seen it, or one that is made now, and whether it is
    new.

    Errors: ``StoreError`` for a plan that is damaged or of another version, for a store without
    conditional writes, and for a folder that holds something else; those of ``make`` and ``check``.
    """
    found = store.content(PLAN)
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
        found = store.content(PLAN) or b""
    where = store.place(PLAN)
    try:
        if json.loads(found)["version"] != VERSION:
            raise StoreError(f"{where} was made by another version of dragoman")
        plan = plans.validate_json(found)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{where} is damaged, or of another command "
            f"({shortened(' '.join(str(error).split()), 200)}). Take another folder, --to, or "
            "remove it, but only together with all parts beside it"
        ) from error
    check(plan)
    return plan, False


def make_plan(asked: Asked) -> PartsPlan:
    """Read all inputs once and cut them. Errors: ``DataError`` for what cannot be read."""
    plan = PartsPlan(asked, tuple(_cut(files, asked) for files in asked.files))
    check_count(len(plan.parts), plan.lines)
    return plan


def _cut(files: tuple[File, ...], asked: Asked) -> Input:
    (name, *others), files = zip(*map(kind_of, files), strict=True)
    if any(other != name for other in others):
        raise DataError(f"{files[0].place} and {files[1].place} are of two kinds")
    kind = KINDS[name]
    for file in files:
        kind.check(file, asked.fields, asked.language)
    found = cut_together(files, kind, asked.lines)
    if len(files) == 1 and name == "text" and len(asked.fields.read) > 1:
        raise DataError(
            f"{files[0].place} holds lines of one text each, and two are needed: give the file of "
            "sources and the file of translations, or one of JSON Lines or Parquet"
        )
    return Input(files, name, found)


def check_same(plan: PartsPlan, asked: Asked, where: str, *, mixed: bool) -> None:
    """Errors: ``RunError`` or ``InputChanged`` where the plan that stands is of something else."""
    made = plan.asked
    another = "Take another folder for these parts: --to"
    if made.verb != asked.verb:
        raise RunError(f"{where} holds the output of {made.verb}, not of {asked.verb}. {another}")
    if sorted(made.runs.values()) != sorted(asked.runs.values()):
        raise RunError(
            f"{where} was begun with {', '.join(made.runs)} as it was then, and "
            f"{', '.join(asked.runs)} computes something else. {another}"
        )
    for name in sorted({*made.options, *asked.options}):
        before, now = made.options.get(name), asked.options.get(name)
        if before != now and not (name == "dragoman" and mixed):
            mix = ", or --mixed if both may be mixed" if name == "dragoman" else ""
            raise RunError(f"{where} was begun with {name} {before!r}, not {now!r}. {another}{mix}")
    if (made.lines, made.fields) != (asked.lines, asked.fields):
        raise RunError(
            f"{where} was begun with parts of {made.lines:,} lines and the fields "
            f"{', '.join(made.fields.read)} and {made.fields.write}. {another}"
        )
    before, now = _files(made), _files(asked)
    if before.keys() != now.keys():
        place = sorted(before.keys() ^ now.keys())[0]
        how = "is not among the inputs any more" if place in before else "is new"
        raise InputChanged(f"{place} {how}, and {where} was begun without that. {another}")
    for place, stat in now.items():
        if before[place] != stat:
            raise InputChanged(
                f"{place} has changed since {where} was begun. {another}, or put back what it was"
            )


def _files(asked: Asked) -> dict[str, Stat]:
    return {file.place: file.stat for files in asked.files for file in files}


def fingerprint(files: Sequence[tuple[str, str]]) -> str:
    """One SHA-256 of several, each with a name."""
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()
