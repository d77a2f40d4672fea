"""Several trainings of one recipe, one after another, each of which leaves one small record
(``records.py``).

Every training has as many updates as the others (``records.py``). The runs themselves go when
their records are written, unless they are to be kept.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman import catalogue
from dragoman.base.atomic import remove_folder, write_text
from dragoman.base.errors import UntrainableError
from dragoman.recipe.recipe import Recipe
from dragoman.runs.corpora import corpora_of
from dragoman.runs.prepare import Say
from dragoman.runs.run import RECIPE, load_forms
from dragoman.studies.records import (
    BASE,
    RECORDS,
    RUNS,
    Record,
    TrainingRecord,
    TrialPoint,
    record_path,
    records_of,
)

if TYPE_CHECKING:
    from dragoman.training.trainer import Outcome


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
