"""The common part of runs that are made in steps, of which each can be continued.

RUN/steps/NAME.tsv   pairs that models have written; NAME.tsv.part until the file is complete
RUN/steps/NAME.json  how many pairs were written so far, in which time
RUN                  the last model, which learns from the pairs
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dragoman.base.atomic import write_text
from dragoman.base.errors import FileError, RunError
from dragoman.base.wording import plural
from dragoman.cluster.driver import ProgressLine, in_figures
from dragoman.console.output import progress_console
from dragoman.runs.files import Count, read_stored
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import RECIPE, STEPS
from dragoman.studies.records import Stored
from dragoman.training.interrupt import StopRequest

FINAL = "final"
"""The name of the recipe of the last model, without the pairs that other models write."""
PLANS = MONOLINGUAL, TEACHERS = "plan.json", "teachers.plan.json"
"""The names of plans: of a run that learns from monolingual text, and of one that learns from
teachers."""


class Translated(Stored):
    """The work that was done on a text so far."""

    lines: Count
    seconds: Annotated[float, Field(ge=0, le=1e15)]
    held: Count = 0
    """Lines of the text that are in dev or test and were left out."""


def is_begun(folder: Path, *plans: str) -> bool:
    """Return whether ``folder`` holds steps of one of ``plans``, and not yet the last model."""
    begun = any((folder / STEPS / plan).is_file() for plan in plans or PLANS)
    return begun and not (folder / RECIPE).is_file()


def refuse_begun(folder: Path) -> None:
    """Errors: ``RunError`` if ``folder`` holds steps."""
    if is_begun(folder):
        raise RunError(
            f"{folder} is already begun. Continue it with dragoman resume {folder}, or set another "
            "folder with --to FOLDER"
        )


def save_plan(folder: Path, name: str, plan: Stored, recipes: Mapping[str, Recipe]) -> None:
    """Write the recipes of steps, by their names, and then their plan, into ``folder``."""
    (folder / STEPS).mkdir(parents=True, exist_ok=True)
    for of_step, recipe in recipes.items():
        recipe.save(folder / STEPS / f"{of_step}.toml")
    written = plan.model_dump_json(indent=1, exclude_none=True)
    write_text(folder / STEPS / name, f"{written}\n")


def write_pairs(
    path: Path,
    pairs_after: Callable[[int], Iterable[tuple[str, str]]],
    total: int,
    say: Say,
    *,
    minutes: float | None = None,
    held: Callable[[], int] = lambda: 0,
) -> bool:
    """Write pairs to ``path``, a line each, after the lines that are there already. Return False if
    the user stopped it.

    ``pairs_after`` makes the pairs after the first n, and ``total`` is the number of all.
    ``minutes``: the time after which the rest is left out. ``held``: the number of lines that were
    left out so far. Errors: ``FileError`` when the disk is full.
    """
    part, record = path.with_name(f"{path.name}.part"), path.with_suffix(".json")
    before = read_stored(record, Translated) if record.is_file() else Translated(lines=0, seconds=0)
    done = first = _complete_lines(part)
    limit = math.inf if minutes is None else 60 * minutes - before.seconds
    shown = ProgressLine(total, done, progress_console(quiet=False))
    shown.begin()

    def save() -> None:
        seconds = round(before.seconds + shown.seconds, 3)
        work = Translated(lines=done, seconds=seconds, held=held())
        write_text(record, work.model_dump_json() + "\n")

    save()
    stop = StopRequest()
    try:
        with stop.listening(), part.open("a", encoding="utf-8", newline="\n") as file:
            for source, target in pairs_after(done):
                file.write(f"{source}\t{target}\n")
                done += 1
                shown.fresh = done - first
                shown.show()
                if stop.requested or shown.seconds > limit:
                    break
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FileError(f"cannot write {part}: {error.strerror}") from error
    save()
    shown.clear()
    if stop.requested:
        return False
    line = f"translated {plural(done, 'line')}, {in_figures(shown.rate)} a second"
    if held():
        line += f"; {plural(held(), 'line is', 'lines are')} also in dev or test and left out"
    if shown.seconds > limit:
        line += ". The time for this step is over, so the rest of the text is not used"
    say(line)
    part.replace(path)
    return True


def _complete_lines(path: Path) -> int:
    """Count the lines of a file that was appended to, and cut off an incomplete one."""
    if not path.is_file():
        return 0
    lines = end = at = 0
    with path.open("rb+") as file:
        while block := file.read(1 << 20):
            lines += block.count(b"\n")
            if (last := block.rfind(b"\n")) >= 0:
                end = at + last + 1
            at += len(block)
        file.truncate(end)
    return lines
