"""Several training runs of one recipe, one after another: their folder, and the small record that
each writes into it.

    FOLDER/PLAN.json          the training runs (sweep.json, ablation.json)
    FOLDER/given.toml         the recipe that was given
    FOLDER/base.toml          the recipe that training runs change: the given one with the number
                              of updates, and the way to compute that the first of them measured
    FOLDER/records/NAME.json  a training run that has ended, however it ended
    FOLDER/runs/NAME          the run folder of the current training run

The plan alone determines the training runs, so they can run at any time and anywhere: copy plan,
recipes and records to another machine, and it continues with the missing ones.

Training runs are comparable if they have the same number of updates, dev set and score. A run is
deleted when its record is written, unless it is to be kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from dragoman.base.atomic import remove_folder, write_text
from dragoman.base.errors import DragomanError, RunError, UntrainableError
from dragoman.base.wording import plural
from dragoman.runs.files import Count, Model, Number, read_stored
from dragoman.runs.prepare import Say, side_pairs
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import RECIPE, Run, load_forms, refuse_run
from dragoman.tasks import catalogue
from dragoman.tasks.shared.progress_made import TrainingSummary, has_learned

if TYPE_CHECKING:
    from dragoman.training.trainer import Outcome

GIVEN, BASE, RECORDS, RUNS = "given.toml", "base.toml", "records", "runs"


class Stored(BaseModel):
    """The base class of everything that such a folder stores as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class StudyPlan(Stored):
    """The common part of the plans of all studies."""

    format: Literal[1] = 1
    minutes: Annotated[float, Field(gt=0)] | None = None
    """The time of all training runs of the first plan together, if one was given."""
    keep: bool = False
    """True if the runs are kept after the study."""


class Record(Stored):
    """A training run that has ended, and its results."""

    model_config = ConfigDict(extra="ignore")  # older records have a curve, too

    name: str
    changes: list[str]
    """Changes to the base recipe, as ``section.key=value``."""
    ended: Literal["finished", "untrainable"]
    why: str = ""
    """The reason why it could not be trained."""
    scores: dict[str, Number] = {}
    """Scores of the final weights on dev; empty if the training failed."""
    parameters: Count = 0
    updates: Count = 0
    tokens: Count = 0
    """The number of target tokens, without padding."""
    minutes: Number = 0.0
    """The minutes that updates and validations took."""
    machine: str = ""
    """The name of the processor that trained."""
    chance: dict[str, Number] = {}
    """The score of guessing on the same dev set; empty in older records."""


@dataclass(frozen=True)
class TrainingRecord:
    """A training run of a study: its name and its changes to the recipe."""

    name: str
    """The name of its record and its run: letters, digits, dots and dashes."""
    changes: tuple[str, ...]
    """The changes to the base recipe, as NAME=VALUE."""


def open_study(
    folder: Path, plan_name: str, what: type[Model], called: str
) -> tuple[Model, Recipe, Recipe]:
    """Read the plan in a folder, the recipe that was given, and the base of all training runs.

    ``called``: the kind of study, for messages. Errors: ``RunError`` for a folder without a plan,
    or a damaged one.
    """
    if not (folder / plan_name).is_file():
        raise RunError(f"{folder} is not a {called}: it has no {plan_name}")
    plan = read_stored(folder / plan_name, what)
    return plan, catalogue.Recipe.load(folder / GIVEN), catalogue.Recipe.load(folder / BASE)


def refuse_other(folder: Path) -> None:
    """Errors: ``RunError`` for a folder that already contains other files."""
    refuse_run(folder)
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if [name for name in names if not name.startswith(".")]:
        raise RunError(
            f"{folder} contains other files ({', '.join(names[:3])}). Set another folder: --to "
            "FOLDER"
        )


def begin(
    folder: Path, plan_name: str, plan: Stored, given: Recipe, minutes: float | None, say: Say
) -> None:
    """Make a folder for several training runs. ``minutes`` is the time of each of them; it is
    converted into updates, which takes some seconds. The plan is written last: a folder that has a
    plan is complete."""
    refuse_other(folder)
    base = of_equal_length(given, say)
    if minutes is not None:
        from dragoman.tasks.training import count_updates  # imports torch

        base = count_updates(base, minutes, say)
    folder.mkdir(parents=True, exist_ok=True)
    given.save(folder / GIVEN)
    base.save(folder / BASE)
    write_text(folder / plan_name, plan.model_dump_json(indent=2) + "\n")


def refuse_differing(
    folder: Path, what: str, settings: Mapping[str, tuple[object, object]], note: str = ""
) -> None:
    """Errors: ``RunError`` if a folder contains another study of this kind. ``settings``: the
    names of settings, with their values there and in the request; ``note``: a description of the
    study in the folder."""
    differs = [name for name, (stored, wanted) in settings.items() if stored != wanted]
    if differs:
        raise RunError(
            f"{folder} holds another {what} ({', '.join(differs)}: not the same{note}). Resume "
            f"that one with dragoman resume {folder}, or set another folder: --to FOLDER"
        )


def records_of(folder: Path, trainings: Sequence[TrainingRecord]) -> list[Record]:
    """The records of the training runs that have ended, in the order of ``trainings``.

    Errors: ``RunError`` for a record that is damaged or belongs to another training.
    """
    records = []
    for training in trainings:
        path = record_path(folder, training.name)
        if not path.is_file():
            continue
        record = read_stored(path, Record)
        if record.changes != list(training.changes):
            raise RunError(
                f"{path} is the record of another training ({' '.join(record.changes)}, not "
                f"{' '.join(training.changes)}). Remove it to train it again"
            )
        records.append(record)
    return records


def record_path(folder: Path, name: str) -> Path:
    """The path of the record of a training run."""
    return folder / RECORDS / f"{name}.json"


def require_validation(recipe: Recipe, what: str) -> None:
    """Errors: ``DragomanError`` for a recipe without validations or without a dev set."""
    if not recipe.training.validate_every:
        raise DragomanError(
            f"{what} compares training runs by their dev scores, but training.validate_every is "
            "0. Set it"
        )
    data = recipe.data
    if not (data.dev or data.embedded or data.split.dev):
        raise DragomanError(
            f"{what} compares training runs by their dev scores, but the recipe has no dev set. "
            "Set data.dev, or hold a set out (data.split.dev = 0.02)"
        )


def of_equal_length(recipe: Recipe, say: Say) -> Recipe:
    """The recipe without early stopping, so that every training makes all of its updates."""
    training = recipe.training
    ends = [f"training.{name}" for name in ("patience", "minutes") if getattr(training, name)]
    if ends:
        say(
            f"{' and '.join(ends)} would end some training runs earlier and is ignored: each has "
            f"{plural(training.updates, 'update')}"
        )
    return recipe.override(training={"patience": 0, "minutes": 0.0, "first_plan": None})


def other_dev(changed: Recipe, recipe: Recipe) -> str:
    """A message if the length limits of a recipe exclude other dev examples than those of
    ``recipe``; empty if both are measured on the same examples."""
    if len(recipe.spec.sides) < 2:
        return ""
    plans = changed.bounded_plan, recipe.bounded_plan
    limits = [(plan.max_source, plan.max_target) for plan in plans]
    if limits[0] == limits[1]:
        return ""
    return (
        f"is measured on other dev examples: sides of up to {max(limits[0]):,} tokens, not of up "
        f"to {max(limits[1]):,}; a table of positions (model.positions.maximum) must be at least "
        "as long as plan.max_source and plan.max_target"
    )


def ranking_score(recipe: Recipe) -> str:
    """The name of the score that ranks training runs: ``training.metric``, or its equivalent that
    is comparable across vocabularies."""
    return recipe.spec.compared or recipe.training.metric


def record_has_learned(record: Record, recipe: Recipe) -> bool:
    """Return whether a training run scores better than guessing; True for an older record, which
    does not contain the score of guessing."""
    name = ranking_score(recipe)
    return has_learned(record.scores, record.chance, name, recipe.spec.measure(name))


def train_all(
    folder: Path,
    trainings: Sequence[TrainingRecord],
    *,
    say: Say,
    again: str,
    keep: bool = False,
) -> bool:
    """Train everything that has no record yet. Returns False if the user stopped it.

    ``again``: the command that continues. ``keep``: keep the runs too, not only the records. A
    training that fails (losses that are not finite, no memory) gets a record too. Errors: as
    ``training.train``, for causes that would stop every training.
    """
    from dragoman.runs.lock import lock_folder
    from dragoman.tasks.training import begin_or_resume
    from dragoman.training.distributed import own_machine

    base: Recipe = catalogue.Recipe.load(folder / BASE)
    spent, trained = 0.0, 0
    with lock_folder(folder):
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
    """The base recipe with ``training.way`` of its first run. That run has measured the fastest way
    to compute; all training runs use it, so that they are computed alike. On another machine it is
    measured again."""
    way = catalogue.Run.open(run).recipe.training.way if (run / RECIPE).is_file() else None
    if way is None or way == base.training.way:
        return base
    base = base.override(training={"way": way})
    base.save(folder / BASE)
    return base


def _record_of(
    training: TrainingRecord, folder: Path, outcome: Outcome | None, why: str, machine: str
) -> Record:
    """Make the record of a training run. ``outcome``: None if it failed; its run folder may then be
    missing."""
    made = partial(Record, name=training.name, changes=list(training.changes), machine=machine)
    ended: Literal["finished", "untrainable"] = "untrainable"
    if not (folder / RECIPE).is_file():
        return made(ended=ended, why=why)
    run = catalogue.Run.open(folder)
    summary, metric = TrainingSummary.of(run), run.recipe.training.metric
    scores: dict[str, float] = {}
    if outcome is not None:
        validations = [line for line in run.metrics() if line["kind"] == "validation"]
        scores = scores_of_weights(validations, run.metadata())
        if metric in scores:
            ended = "finished"
        else:
            why = f"no validation gave a finite {metric}"
    return made(
        ended=ended,
        why=why,
        scores=scores,
        parameters=parameters_of(run),
        updates=summary.updates,
        tokens=summary.tokens,
        minutes=round(minutes_of(run), 4),
        chance=catalogue.runtime_of(run.task).chance(
            run.recipe, load_forms(run.recipe, folder, prepared=True), side_pairs(run.recipe, "dev")
        ),
    )


def parameters_of(run: Run) -> int:
    """The number of parameters of a run's model."""
    from dragoman.runs.model import hollow_model  # imports torch

    return sum(p.numel() for p in hollow_model(run.recipe, *run.forms).parameters())


def minutes_of(run: Run) -> float:
    """The minutes that the updates and validations of a run took."""
    return max((line.get("elapsed", 0.0) for line in run.metrics()), default=0.0) / 60


def scores_of_weights(
    validations: Sequence[dict[str, object]], metadata: dict[str, str]
) -> dict[str, float]:
    """The dev scores of the saved weights, as recorded in the log of the run.

    ``metadata``: the metadata of the weights file, which identifies these weights.
    """
    average = metadata.get("weights") == "average"
    lines = [
        line
        for line in validations
        if (line["weights"] == "average") == average
        and str(line["update"]) == metadata.get("update")
    ]
    if not lines:
        return {}
    scores = lines[-1]["scores"]
    assert isinstance(scores, dict)
    return {name: value for name, value in scores.items() if value is not None}
