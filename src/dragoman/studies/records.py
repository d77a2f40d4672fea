"""The folder of several trainings of one recipe, and the small records that they leave in it.

    FOLDER/PLAN.json          what is to be trained (sweep.json, ablation.json)
    FOLDER/given.toml         the recipe that was given
    FOLDER/base.toml          the same with the updates of each training, and the way to compute
                              them that the first one has measured: what all of them change
    FOLDER/records/NAME.json  a training that has ended, however it ended
    FOLDER/runs/NAME          the run of the one that is under way

What is trained follows from the plan alone, so it matters neither when nor where: whoever copies
plan, recipes and records to another machine goes on there with those that are missing.

Several trainings are comparable by as many updates, one dev set and one score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman import catalogue
from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError, RunError
from dragoman.base.reading import read_json
from dragoman.base.wording import plural
from dragoman.recipe.recipe import Recipe
from dragoman.runs.prepare import Say
from dragoman.runs.run import refuse_run
from dragoman.tasks.shared.progress_made import has_learned

GIVEN, BASE, RECORDS, RUNS = "given.toml", "base.toml", "records", "runs"

_Count = Annotated[int, Field(ge=0, le=10**15)]
_Number = Annotated[float, Field(ge=-1e308, le=1e308)]


class Stored(BaseModel):
    """The base of what lies in such a folder as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class TrialPoint(Stored):
    """A validation."""

    update: _Count
    minutes: _Number
    value: _Number
    """Of the metric."""


class Record(Stored):
    """One training that has ended."""

    name: str
    changes: list[str]
    """Of the base recipe, as ``section.key=value``."""
    ended: Literal["finished", "untrainable"]
    why: str = ""
    """What kept it from being trained."""
    scores: dict[str, _Number] = {}
    """Of the weights that it ended with, on dev. None of what could not be trained."""
    parameters: _Count = 0
    updates: _Count = 0
    tokens: _Count = 0
    """Of the target, padding not counted."""
    minutes: _Number = 0.0
    """Of updates and validations."""
    curve: list[TrialPoint] = []
    machine: str = ""
    """The processor."""
    chance: dict[str, _Number] = {}
    """What guessing scores on the same dev set; older records do not say."""


@dataclass(frozen=True)
class TrainingRecord:
    """One of several."""

    name: str
    """Of its record and its run: letters, digits, dots and dashes."""
    changes: tuple[str, ...]
    """Of the base recipe."""


_Plan = TypeVar("_Plan", bound=Stored)


def read_stored(path: Path, what: type[_Plan]) -> _Plan:
    """Errors: ``RunError`` if the file is damaged."""
    try:
        return what.model_validate(read_json(path))
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, problem["loc"]))[:100]
        raise RunError(f"{path} is damaged ({place}: {problem['msg']})") from None


def open_study(
    folder: Path, plan_name: str, what: type[_Plan], called: str
) -> tuple[_Plan, Recipe, Recipe]:
    """The plan that lies in a folder, the recipe that was given, and the base of all trainings.

    ``called``: what the folder should hold. Errors: ``RunError`` for a folder without it, or one
    that is damaged.
    """
    if not (folder / plan_name).is_file():
        raise RunError(f"{folder} holds no {called}: it has no {plan_name}")
    plan = read_stored(folder / plan_name, what)
    return plan, catalogue.Recipe.load(folder / GIVEN), catalogue.Recipe.load(folder / BASE)


def refuse_other(folder: Path) -> None:
    """Errors: ``RunError`` for a folder in which something else lies, before it gets a plan."""
    refuse_run(folder)
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if [name for name in found if not name.startswith(".")]:
        raise RunError(
            f"{folder} holds something else ({', '.join(found[:3])}): name another folder, "
            "--to FOLDER"
        )


def begin(
    folder: Path, plan_name: str, plan: Stored, given: Recipe, minutes: float | None, say: Say
) -> None:
    """Make a folder for several trainings. ``minutes``, for each of them, are turned into updates,
    which takes some seconds. The plan comes last: with it, all is there."""
    refuse_other(folder)
    base = of_equal_length(given, say)
    if minutes is not None:
        from dragoman.tasks.training import count_updates  # torch

        base = count_updates(base, minutes, say)
    folder.mkdir(parents=True, exist_ok=True)
    given.save(folder / GIVEN)
    base.save(folder / BASE)
    write_text(folder / plan_name, plan.model_dump_json(indent=2) + "\n")


def refuse_differing(folder: Path, what: str, differs: Sequence[str], told: str = "") -> None:
    """Errors: ``RunError`` where a folder holds another study of that kind than the one that is
    asked for. ``differs``: what is not the same; ``told``: what the one that lies there does."""
    if differs:
        raise RunError(
            f"{folder} holds another {what} ({', '.join(differs)}: not the same{told}). Go on "
            f"with that one: dragoman resume {folder}; or name another folder: --to FOLDER"
        )


def records_of(folder: Path, trainings: Sequence[TrainingRecord]) -> list[Record]:
    """Those of the trainings that have ended, in their order.

    Errors: ``RunError`` for a record that is damaged, or of another training.
    """
    found = []
    for training in trainings:
        path = record_path(folder, training.name)
        if not path.is_file():
            continue
        record = read_stored(path, Record)
        if record.changes != list(training.changes):
            raise RunError(
                f"{path} is the record of another training ({' '.join(record.changes)}, not "
                f"{' '.join(training.changes)}): remove it, and it is trained again"
            )
        found.append(record)
    return found


def record_path(folder: Path, name: str) -> Path:
    """The record of a training."""
    return folder / RECORDS / f"{name}.json"


def require_validation(recipe: Recipe, what: str) -> None:
    """Errors: ``DragomanError`` for a recipe whose trainings could not be told apart."""
    if not recipe.training.validate_every:
        raise DragomanError(
            f"{what} tells trainings apart by their scores on dev, and training.validate_every is "
            "0: set it"
        )
    data = recipe.data
    if not (data.dev or data.embedded or data.split.dev):
        raise DragomanError(
            f"{what} tells trainings apart by their scores on dev, and the recipe has no dev set: "
            "name one (data.dev), or hold one out (data.split.dev = 0.02)"
        )


def of_equal_length(recipe: Recipe, say: Say) -> Recipe:
    """The recipe as each of several trainings takes it: with all of its updates, so that what ends
    one earlier than another is left out."""
    training = recipe.training
    ends = [f"training.{name}" for name in ("patience", "minutes") if getattr(training, name)]
    if ends:
        say(
            f"{' and '.join(ends)} would end some trainings before others and is ignored: each "
            f"has {plural(training.updates, 'update')}"
        )
    same = {"patience": 0, "minutes": 0.0, "first_plan": None}
    return recipe.model_copy(update={"training": training.model_copy(update=same)})


def other_dev(changed: Recipe, recipe: Recipe) -> str:
    """A message about a recipe whose limits on length leave out other dev examples than those of
    ``recipe``; empty where both are measured on the same."""
    if len(recipe.spec.sides) < 2:
        return ""
    plans = changed.bounded_plan, recipe.bounded_plan
    limits = [(plan.max_source, plan.max_target) for plan in plans]
    if limits[0] == limits[1]:
        return ""
    return (
        f"is measured on other dev examples: sides of up to {max(limits[0]):,} tokens, not of up "
        f"to {max(limits[1]):,}; a table of positions (model.positions.maximum) must be as long as "
        "plan.max_source and plan.max_target"
    )


def judged_by(recipe: Recipe) -> str:
    """The score by which trainings are told apart: ``training.metric``, or that of the same meaning
    which compares across vocabularies."""
    return recipe.spec.compared or recipe.training.metric


def record_has_learned(record: Record, recipe: Recipe) -> bool:
    """Whether a training scores better than guessing would; True of an older record, which does not
    say what that scores."""
    name = judged_by(recipe)
    return has_learned(record.scores, record.chance, name, recipe.spec.measure(name))
