"""A file of results: rows, each written as soon as it is measured, so that a run can go on."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from provenance import Watch, commit, machine

from dragoman.base.atomic import write_text
from dragoman.tasks.catalogue import Run

Row = dict[str, Any]


class Results:
    """The rows of one file. ``key`` names the fields that tell one row from another."""

    def __init__(self, path: Path, key: Sequence[str]) -> None:
        self.path = path
        self.key = key

    def rows(self) -> list[Row]:
        if not self.path.exists():
            return []
        rows: list[Row] = json.loads(self.path.read_text(encoding="utf-8"))["rows"]
        return rows

    def find(self, row: Mapping[str, Any]) -> Row | None:
        """The row with the same key."""
        return next((old for old in self.rows() if self._same(row, old)), None)

    def has(self, row: Mapping[str, Any]) -> bool:
        """Whether such a row stands there, measured at this very commit on this machine."""
        now, old = commit(), self.find(row)
        if old is None or now is None or now.endswith("+"):
            return False
        return (old.get("commit"), old.get("machine")) == (now, machine())

    def store(self, row: Row) -> None:
        """Write a row: in place of the one with the same key, or behind the others."""
        rows = self.rows()
        place = next((i for i, old in enumerate(rows) if self._same(row, old)), len(rows))
        rows[place : place + 1] = [row]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps({"rows": rows}, indent=1) + "\n")

    def _same(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        return all(one.get(name) == other.get(name) for name in self.key)


def measure_runs(
    path: Path, about: str, of: str, measured: Callable[[Run], Row], table: Callable[[Row], str]
) -> None:
    """A program that measures the runs on its command line, one after another: shown as tables,
    stored in ``path``. ``of``: what they are runs of."""
    parser = ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("runs", nargs="+", help=f"run folders of {of}")
    results = Results(path, ("run",))
    for folder in parser.parse_args().runs:
        watch, run = Watch(), Run.open(folder)
        updates = [line for line in run.metrics() if line["kind"] == "update"]
        minutes = round(updates[-1]["elapsed"] / 60, 1) if updates else None
        row = {"run": run.folder.name, "trained_minutes": minutes} | measured(run)
        print(table(row), flush=True)
        results.store(row | watch.stamp())
