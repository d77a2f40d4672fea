"""What a folder of parts is made of: the inputs as they were, the run, and how lines are cut.

The plan is written once, and whoever comes later takes it as it is. If it is of other inputs, of
another run or of other options, nothing is done: the parts of two plans never mix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pydantic import TypeAdapter

from dragoman.base.errors import DataError, RunError
from dragoman.base.wording import plural
from dragoman.cluster.inputs.compression import Compression
from dragoman.cluster.inputs.files import File
from dragoman.cluster.inputs.kinds import KINDS, KindName, kind_of
from dragoman.cluster.inputs.lines_and_rows import Fields, InputKind, PartOfInput, Stretch
from dragoman.stores.store import InputChanged, Stat

NOTES = "_dragoman"
"""The folder beside the parts: programs that read folders of data leave such names out."""
PLAN = f"{NOTES}/plan.json"
VERSION = 2
"""Of what is written of a plan."""
MOST_PARTS = 1_000_000


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
    compressions: tuple[Compression, ...]
    stretches: tuple[tuple[Stretch, ...], ...]
    """Of each part, those of each file."""


@dataclass(frozen=True)
class PartsPlan:
    """All parts of all inputs."""

    asked: Asked
    inputs: tuple[Input, ...]
    version: int = VERSION

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Of each part its input, and its place in it."""
        return [(i, k) for i, one in enumerate(self.inputs) for k in range(len(one.stretches))]

    @property
    def lines(self) -> int:
        """Of all parts."""
        return sum(part[0].lines for one in self.inputs for part in one.stretches)

    def part(self, place: tuple[int, int]) -> tuple[InputKind, PartOfInput]:
        """One part, and the kind that reads it."""
        one = self.inputs[place[0]]
        part = PartOfInput(one.files, one.compressions, one.stretches[place[1]], self.asked.fields)
        return KINDS[one.kind], part

    def name(self, number: int, place: tuple[int, int]) -> str:
        """Of its output: ``part-00017.jsonl.zst``. Sorted by name, outputs are in the order of the
        inputs."""
        one = self.inputs[place[0]]
        digits = max(5, len(str(len(self.parts) - 1)))
        compression = one.compressions[0]
        ending = f"{KINDS[one.kind].ending}{f'.{compression}' if compression else ''}"
        return f"part-{number:0{digits}}.{ending}"

    @property
    def digest(self) -> str:
        """SHA-256 of what is written of it, in hex."""
        return hashlib.sha256(PARTS_PLANS.dump_json(self)).hexdigest()


PARTS_PLANS = TypeAdapter(PartsPlan)
"""Writes and reads them, as JSON."""


def make_plan(asked: Asked) -> PartsPlan:
    """Read all inputs once and cut them. Errors: ``DataError`` for what cannot be read."""
    plan = PartsPlan(asked, tuple(_cut(files, asked) for files in asked.files))
    if len(plan.parts) > MOST_PARTS:
        raise DataError(
            f"{plural(plan.lines, 'line')} in {plural(len(plan.parts), 'part')}: take more lines "
            f"for each, so that there are at most {MOST_PARTS:,}: --lines N"
        )
    return plan


def _cut(files: tuple[File, ...], asked: Asked) -> Input:
    found = [kind_of(file) for file in files]
    (name, _), *others = found
    if any(other != name for other, _ in others):
        raise DataError(f"{files[0].place} and {files[1].place} are of two kinds")
    kind = KINDS[name]
    columns = []
    for file, (_, compression) in zip(files, found, strict=True):
        kind.check(file, compression, asked.fields, asked.language)
        columns.append(list(kind.cut(file, compression, asked.lines)))
    counts = [sum(one.lines for one in column) for column in columns]
    for (file, other), (lines, more) in zip(pairwise(files), pairwise(counts), strict=True):
        if lines != more:
            raise DataError(
                f"{file.place} has {plural(lines, 'line')}, and {other.place} has {more:,}: they "
                "must agree line by line"
            )
    if len(files) == 1 and name == "text" and len(asked.fields.read) > 1:
        raise DataError(
            f"{files[0].place} holds lines of one text each, and two are needed: give the file of "
            "sources and the file of translations, or one of JSON Lines or Parquet"
        )
    return Input(files, name, tuple(c for _, c in found), tuple(zip(*columns, strict=True)))


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
