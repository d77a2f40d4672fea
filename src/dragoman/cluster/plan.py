"""The plan of a folder of parts: the inputs in their state, the run, and the cuts of the lines.

The plan is written once, and later commands use it as it is. If they have other inputs, another run
or other options, they are refused: the parts of two plans never mix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter

from dragoman.base.errors import DataError, RunError
from dragoman.base.wording import shorten
from dragoman.cluster import kinds
from dragoman.cluster.files import File
from dragoman.cluster.work import NOTES, check_conditional
from dragoman.stores import InputChanged, Stat, Store, StoreError

PLAN = f"{NOTES}/plan.json"
VERSION = 4
"""The version of the stored format."""
Plan = TypeVar("Plan")


@dataclass(frozen=True)
class Asked:
    """The request of a command, before its inputs are read."""

    verb: str
    runs: Mapping[str, str]
    """Run folder -> fingerprint of all that it computes with."""
    options: Mapping[str, Any]
    """The options that determine the output."""
    lines: int
    """The most lines of a part."""
    fields: kinds.Fields
    files: tuple[tuple[File, ...], ...]
    """The inputs; each has several files if their lines belong together."""
    language: str | None = None
    """The language of the text, by which files are checked to be lines of text; None: every file is
    accepted."""


@dataclass(frozen=True)
class Input:
    """One file, or several whose lines belong together, cut into parts."""

    files: tuple[File, ...]
    kind: kinds.KindName
    stretches: tuple[tuple[kinds.Stretch, ...], ...]
    """For each part, the stretch of each file."""


@dataclass(frozen=True)
class PartsPlan:
    """The plan of all parts of all inputs."""

    asked: Asked
    inputs: tuple[Input, ...]
    version: int = VERSION

    @property
    def parts(self) -> list[tuple[kinds.InputKind, kinds.PartOfInput]]:
        """All parts in order, each with the kind that reads it."""
        fields = self.asked.fields
        return [
            (kinds.KINDS[entry.kind], kinds.PartOfInput(entry.files, stretches, fields))
            for entry in self.inputs
            for stretches in entry.stretches
        ]

    @property
    def lines(self) -> int:
        """The number of lines of all parts."""
        return sum(part[0].lines for entry in self.inputs for part in entry.stretches)

    @property
    def digest(self) -> str:
        """The SHA-256 of the stored plan, in hex."""
        return hashlib.sha256(PARTS_PLANS.dump_json(self)).hexdigest()


PARTS_PLANS = TypeAdapter(PartsPlan)
"""Writes and reads plans as JSON."""


def stored_plan(
    store: Store,
    plans: TypeAdapter[Plan],
    make: Callable[[], Plan],
    check: Callable[[Plan], None],
) -> tuple[Plan, bool]:
    """The stored plan, after ``check``, or a new one of ``make``; True with a new one.

    Errors: ``StoreError`` for a plan that is damaged or of another version, for a store without
    conditional writes, and for a folder with other contents; and the errors of ``make`` and
    ``check``.
    """
    content = store.content(PLAN)
    if content is None:
        foreign = next((name for name, _ in store.names("")), None)
        if foreign is not None and not foreign.startswith(f"{NOTES}/"):
            raise StoreError(
                f"{store.address} contains {foreign} and is not a job folder. Use an empty folder"
            )
        check_conditional(store)
        plan = make()
        if store.create(PLAN, plans.dump_json(plan)):
            return plan, True
        content = store.content(PLAN) or b""
    where = store.place(PLAN)
    try:
        if json.loads(content)["version"] != VERSION:
            raise StoreError(f"{where} was made by another version of dragoman")
        plan = plans.validate_json(content)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{where} is damaged or belongs to another command "
            f"({shorten(' '.join(str(error).split()), 200)}). Choose another folder with --to, "
            "or remove this one with all of its parts"
        ) from error
    check(plan)
    return plan, False


def make_plan(asked: Asked) -> PartsPlan:
    """Read all inputs once and cut them. Errors: ``DataError`` for an input that cannot be read."""
    plan = PartsPlan(asked, tuple(_input_of(files, asked) for files in asked.files))
    kinds.check_count(len(plan.parts), plan.lines)
    return plan


def _input_of(files: tuple[File, ...], asked: Asked) -> Input:
    (name, *others), files = zip(*map(kinds.kind_of, files), strict=True)
    if any(other != name for other in others):
        raise DataError(f"{files[0].place} and {files[1].place} have different formats")
    kind = kinds.KINDS[name]
    for file in files:
        kind.check(file, asked.fields, asked.language)
    stretches = kinds.cut_together(files, kind, asked.lines)
    if len(files) == 1 and name == "text" and len(asked.fields.read) > 1:
        raise DataError(
            f"{files[0].place} has one text per line, but two are needed. Give a file of sources "
            "and a file of translations, or one of JSON Lines or Parquet"
        )
    return Input(files, name, stretches)


def check_same(plan: PartsPlan, asked: Asked, where: str, *, mixed: bool) -> None:
    """Errors: ``RunError`` or ``InputChanged`` if the stored plan differs from the request."""
    made = plan.asked
    another = "Use another folder for these parts: --to"
    if made.verb != asked.verb:
        raise RunError(f"{where} has the output of {made.verb}, not of {asked.verb}. {another}")
    if sorted(made.runs.values()) != sorted(asked.runs.values()):
        raise RunError(
            f"{where} was begun with {', '.join(made.runs)}, but this command uses "
            f"{', '.join(asked.runs)}, whose results would be different. {another}"
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
        how = "is missing" if place in before else "is new"
        raise InputChanged(f"{place} {how}, compared with the inputs of {where}. {another}")
    for place, stat in now.items():
        if before[place] != stat:
            raise InputChanged(
                f"{place} has changed since {where} was begun. {another}, or restore the old file"
            )


def _files(asked: Asked) -> dict[str, Stat]:
    return {file.place: file.stat for files in asked.files for file in files}


def fingerprint(files: Sequence[tuple[str, str]]) -> str:
    """One SHA-256 of several named ones."""
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()
