"""What was measured of this machine, remembered, so that it is not measured at every start.

The first translator on a machine times a small model on each way to run it that there is (some
tenths of a second); the answer lies in the user's cache folder, under a key of everything that it
depends on: the processor, torch, the native library, the number of threads. Deleting the file, or
moving the folder to another machine, only means that it is measured again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Annotated

import torch
from pydantic import Field, TypeAdapter, ValidationError

from dragoman.atomic import write_text
from dragoman.errors import FileError, RunError
from dragoman.native import compile as building
from dragoman.native import library
from dragoman.reading import read_json

NAME = "machine.json"

_KNOWN = TypeAdapter(dict[str, dict[str, Annotated[int, Field(strict=True, ge=1, le=10**12)]]])
"""What the file holds: key -> trial -> microseconds."""

logger = logging.getLogger("dragoman")

Trial = Callable[[], None]
"""Does the work that is timed."""


def microseconds(folder: pathlib.Path, trials: Mapping[str, Callable[[], Trial]]) -> dict[str, int]:
    """What each of ``trials`` costs on this machine: read from ``folder``, or measured now.

    The value of a trial prepares what is to be timed. A folder that cannot be written to is no
    error: then it is measured again next time.
    """
    path, key = folder / NAME, machine_key()
    known = _read(path)
    found = known.get(key, {})
    if not trials.keys() <= found.keys():
        found = found | measure(trials)
        _write(path, known | {key: found})
    return {name: found[name] for name in trials}


def measure(trials: Mapping[str, Callable[[], Trial]], rounds: int = 5) -> dict[str, int]:
    """Time all in turns -> the least processor time of each, over all threads.

    Not wall clock: on a busy machine that measures how often one is interrupted.
    """
    work = {name: prepare() for name, prepare in trials.items()}
    best = dict.fromkeys(work, float("inf"))
    for turn in range(rounds + 1):
        for name, trial in work.items():
            begin = time.process_time()
            trial()
            if turn > 0:  # the first finds everything cold
                best[name] = min(best[name], time.process_time() - begin)
    return {name: max(1, round(seconds * 1e6)) for name, seconds in best.items()}


def machine_key() -> str:
    """A hash of everything that a measurement depends on."""
    digest = hashlib.sha256()
    for part in (
        _processor(),
        torch.__version__,
        building.fingerprint(),
        str(library.status().level),
        str(torch.get_num_threads()),
    ):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def _processor() -> str:
    """The lines of /proc/cpuinfo that tell processors apart; of the first core."""
    path = pathlib.Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part")
    return "\n".join(
        line for line in text.partition("\n\n")[0].splitlines() if line.startswith(wanted)
    )


def _read(path: pathlib.Path) -> dict[str, dict[str, int]]:
    try:
        return _KNOWN.validate_python(read_json(path))
    except (RunError, ValidationError):
        return {}


def _write(path: pathlib.Path, known: Mapping[str, Mapping[str, int]]) -> None:
    """Of several writers the last one wins."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(known, indent=1) + "\n")
    except (OSError, FileError) as error:
        logger.debug("%s: what was measured is not kept: %s", path, error)
