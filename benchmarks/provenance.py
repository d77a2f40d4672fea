"""Where a figure comes from: commit, machine, what else ran there, date. Every row carries them."""

from __future__ import annotations

import datetime
import os
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

from instructions import IN_WORDS, kept_to

from dragoman.engine.machine import cores, processor, vector_units

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src", "benchmarks", ":(exclude)benchmarks/results", ":(exclude)benchmarks/README.md")
"""What a figure depends on, as git names paths: writing results down changes no figure."""

Stamp = dict[str, Any]


class Watch:
    """The provenance of what is measured from when it is made until ``stamp`` is called."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._others = _seconds_of_others()

    def stamp(self) -> Stamp:
        """commit, machine, load (processor cores that other programs kept busy), date."""
        seconds = max(time.monotonic() - self._began, 1e-3)
        load = None
        if (others := _seconds_of_others()) is not None and self._others is not None:
            load = round(max(0.0, others - self._others) / seconds, 2)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return {"commit": commit(), "machine": machine(), "load": load, "date": today}


@cache
def commit() -> str | None:
    """The last commit that changed the code; "+" behind it where files differ from it.

    None where this is no clone.
    """
    last = _git("log", "-1", "--format=%H", "--", *CODE)
    if not last:
        return None
    return last[:10] + ("+" if _git("status", "--porcelain", "--", *CODE) else "")


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


@cache
def machine() -> str:
    """The processor's name, family and model, its instruction sets, and how many cores are used."""
    count, kept = cores(), kept_to()
    units = ", ".join(vector_units()) + (f", kept to {IN_WORDS[kept]}" if kept else "")
    return f"{processor()}; {units}; {count} core{'s' if count > 1 else ''}"


def _seconds_of_others() -> float | None:
    """Processor seconds of all programs so far, less those of this one and what it started.

    What a hypervisor took away counts. None where the kernel does not tell (it is Linux's /proc).
    """
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, first[1:9])
    ticks = user + nice + system + irq + softirq + stolen
    return ticks / os.sysconf("SC_CLK_TCK") - _own_seconds()


def _own_seconds() -> float:
    """Processor seconds of this process and all that descend from it, those that ended too."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended since
        number = int(path.parent.name)
        parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while more := {n for n, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks.get(n, 0) for n in family) / os.sysconf("SC_CLK_TCK")
