"""Several trainings of one recipe, one after another: their folder, and the small record that each
leaves in it.

    FOLDER/PLAN.json          what is to be trained (sweep.json, ablation.json)
    FOLDER/given.toml         the recipe that was given
    FOLDER/base.toml          the same with the updates of each training, and the way to compute
                              them that the first one has measured: what all of them change
    FOLDER/records/NAME.json  a training that has ended, however it ended
    FOLDER/runs/NAME          the run of the one that is under way

What is trained follows from the plan alone, so it matters neither when nor where: whoever copies
plan, recipes and records to another machine goes on there with those that are missing.

Several trainings are comparable by as many updates, one dev set and one score. The runs themselves
go when their records are written, unless they are to be kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman import catalogue
from dragoman.base.atomic import remove_folder, write_text
from dragoman.base.errors import DragomanError, RunError, UntrainableError
from dragoman.base.reading import read_json
from dragoman.base.wording import plural
from dragoman.recipe.recipe import Recipe
from dragoman.runs.corpora import corpora_of
from dragoman.runs.prepare import Say
from dragoman.runs.run import RECIPE, load_forms, refuse_run
from dragoman.tasks.shared.progress_made import has_learned

if TYPE_CHECKING:
    from dragoman.training.trainer import Outcome

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


def train_all(
    folder: Path,
    trainings: Sequence[TrainingRecord],
    *,
    say: Say,
    again: str,
    keep: bool = False,
) -> bool:
    """Train those that have no record yet. -> False if somebody stopped it.

    ``again``: the command that goes on. ``keep``: their runs too, and not the records alone. What
    cannot be trained (losses that are not finite, no memory) becomes a record as well.
    Errors: as ``training.train``, of whatever would befall all of them.
    """
    from dragoman.runs.lock import locked
    from dragoman.tasks.training import begin_or_resume
    from dragoman.training.distributed import own_machine

    base: Recipe = catalogue.Recipe.load(folder / BASE)
    spent, trained = 0.0, 0
    with locked(folder):
        done = {record.name for record in records_of(folder, trainings)}
        (folder / RECORDS).mkdir(exist_ok=True)
        missing = [training for training in trainings if training.name not in done]
        for place, training in enumerate(missing):
            run = folder / RUNS / training.name
            left = ""
            if trained:
                minutes = spent / trained * (len(missing) - place)
                left = f"; about {minutes:.0f} minutes left" if minutes > 1 else ""
            number = len(trainings) - len(missing) + place + 1
            say(
                f"\n{number} of {len(trainings)}: {training.name} "
                f"({', '.join(training.changes) or 'as it is'}){left}"
            )
            outcome, why = None, ""
            try:
                outcome = begin_or_resume(
                    base.change(training.changes), run,
                    say=say if place == 0 else lambda _: None, measure=False, resume_command=again,
                )  # fmt: skip
            except UntrainableError as error:
                why = str(error)
            base = _by_one_way(folder, base, run)
            if outcome is not None and outcome.reason == "interrupted":
                return False
            record = _record_of(training, run, outcome, why, own_machine())
            write_text(record_path(folder, training.name), record.model_dump_json(indent=1) + "\n")
            if not keep:
                remove_folder(run)
            spent, trained = spent + record.minutes, trained + 1
        if not keep:
            shutil.rmtree(folder / RUNS, ignore_errors=True)
    return True


def _by_one_way(folder: Path, base: Recipe, run: Path) -> Recipe:
    """The base recipe with the way that a run of it is computed by: the first one has measured it
    for all of them, since trainings that are compared are to be computed alike. On another machine
    it is measured anew."""
    found = catalogue.Run.open(run).recipe.training.way if (run / RECIPE).is_file() else None
    if found is None or found == base.training.way:
        return base
    training = base.training.model_copy(update={"way": found})
    base = base.model_copy(update={"training": training})
    base.save(folder / BASE)
    return base


def _record_of(
    training: TrainingRecord, folder: Path, outcome: Outcome | None, why: str, machine: str
) -> Record:
    """``outcome``: None for what could not be trained, whose run may not even have been begun."""
    ended: Literal["finished", "untrainable"] = "untrainable"
    if not (folder / RECIPE).is_file():
        return Record(
            name=training.name, changes=list(training.changes), ended=ended, why=why,
            machine=machine,
        )  # fmt: skip
    from dragoman.runs.model import hollow_model

    run = catalogue.Run.open(folder)
    dev = [pair for corpus in corpora_of(run.recipe, "dev") for pair in corpus.pairs]
    lines = list(run.metrics())
    updates = [line for line in lines if line["kind"] == "update"]
    validations = [line for line in lines if line["kind"] == "validation"]
    metric = run.recipe.training.metric
    scores: dict[str, float] = {}
    if outcome is not None:
        scores = kept_scores(validations, run.metadata())
        if metric in scores:
            ended = "finished"
        else:
            why = f"no validation gave a {metric} that is finite"
    return Record(
        name=training.name,
        changes=list(training.changes),
        ended=ended,
        why=why,
        scores=scores,
        parameters=sum(p.numel() for p in hollow_model(run.recipe, *run.forms).parameters()),
        updates=updates[-1]["update"] if updates else 0,
        tokens=sum(line["tokens"] for line in updates),
        minutes=round(max((line["elapsed"] for line in lines), default=0.0) / 60, 4),
        curve=[
            TrialPoint(
                update=line["update"],
                minutes=round(line["elapsed"] / 60, 4),
                value=line["scores"][metric],
            )
            for line in validations
            if line["weights"] != "average" and line["scores"].get(metric) is not None
        ],
        machine=machine,
        chance=catalogue.runtime_of(run.task).chance(
            run.recipe, load_forms(run.recipe, folder, prepared=True), dev
        ),
    )


def kept_scores(
    validations: Sequence[dict[str, object]], metadata: dict[str, str]
) -> dict[str, float]:
    """What the weights of a run's file scored on dev, as its log has it.

    ``metadata``: of that file, which says which weights these are.
    """
    average = metadata.get("weights") == "average"
    found = [
        line
        for line in validations
        if (line["weights"] == "average") == average
        and str(line["update"]) == metadata.get("update")
    ]
    if not found:
        return {}
    scores = found[-1]["scores"]
    assert isinstance(scores, dict)
    return {name: value for name, value in scores.items() if value is not None}
