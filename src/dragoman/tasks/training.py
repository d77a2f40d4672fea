"""Training by a recipe: everything that it needs, put together in one visible place.

``train`` and ``resume`` make a run folder, whatever the task (``new_run.py`` says what is in it
before the first update); ``engine/engine.py`` is what uses it.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch

from dragoman import catalogue
from dragoman.base.atomic import write_text
from dragoman.base.errors import RunError
from dragoman.base.task import ModelPart
from dragoman.base.wording import plural
from dragoman.data.hashing import torch_seed
from dragoman.data.plan import Plan
from dragoman.data.word_links import starts_of
from dragoman.engine.alignment_head import AligningHead
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.models.interface import Network
from dragoman.native.measured import measures
from dragoman.nn.linear import refresh
from dragoman.recipe.recipe import Recipe
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.lock import LOCK, locked
from dragoman.runs.model import build_model, fill_model
from dragoman.runs.moved_text import with_text
from dragoman.runs.prepare import Prepared, Say, check_unchanged, prepare
from dragoman.runs.run import RECIPE, WAYS, WEIGHTS, Run, refuse_occupied, refuse_run
from dragoman.runs.user_cache import cache_folder
from dragoman.sizing.minutes import cost_summary, for_minutes, too_short, with_updates
from dragoman.tasks.new_run import fill_new_run, has_learned
from dragoman.tasks.shared.examples import TrainingBatches
from dragoman.training.checkpoint import Checkpoints
from dragoman.training.distributed import Ranks, gpu_name
from dragoman.training.fastest_way import MeasuredWays, fastest_way, measure_throughput
from dragoman.training.losses.ctc import JointCtc, without_room
from dragoman.training.losses.guided import GuidedAlignment
from dragoman.training.losses.objectives import Objective
from dragoman.training.minutes import Correction, planned_schedule, seconds_to_fill
from dragoman.training.progress import make_display
from dragoman.training.settings import TrainingSettings, this_machine
from dragoman.training.trainer import Outcome, Trainer
from dragoman.training.weights import average_weights, save_weights

_TIMED = 32
"""Dev examples on which a validation is timed."""


def train(
    recipe: Recipe,
    folder: Path,
    *,
    start_from: Run | None = None,
    take: ModelPart | None = None,
    minutes: float | None = None,
    epochs: float | None = None,
    say: Say = print,
    display: bool = True,
    measure: bool = True,
    resume_command: str = "",
) -> Outcome:
    """Train by ``recipe`` into a new run ``folder``.

    ``minutes`` or ``epochs`` replace the recipe's number of updates; minutes by a measurement of
    some seconds on this machine. What was chosen is written into the run's recipe.

    ``start_from``: a run whose vocabulary and weights, the best so far, are taken over
    (fine-tuning); the recipe must be made for its model (``sizing.for_fine_tuning``). ``take``: of
    that run this part alone, with its vocabulary, as far as it fits (``new_run.py``). ``say`` gets
    what a person should read, ``display`` shows progress, ``resume_command`` is what an interrupted
    run names. Without ``measure``, where the updates are counted already, it is not said how long
    the run will take. Which way of this machine trains the model the fastest is measured unless the
    recipe says it, and written into the run's recipe and beside it (``WAYS``).
    Errors: ``RunError`` if the folder is a run already or another process is at work in it,
    ``DataError`` for unusable text, ``TrainingError`` when training cannot go on, ``FileError``
    when the disk is full.
    """
    is_new = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    with ExitStack() as stack:
        ranks = stack.enter_context(Ranks.joined())
        if ranks.first:
            if not (folder / LOCK).exists():  # else somebody is at work, or was killed
                refuse_occupied(folder)
            stack.enter_context(locked(folder))
            refuse_run(folder)
        try:
            if ranks.first:
                prepared = fill_new_run(recipe, folder, start_from, take, say)
            # Each may have measured this machine for itself: the first one's sizes count.
            recipe = type(recipe).model_validate_json(
                ranks.broadcast_text(recipe.model_dump_json())
            )
            if not ranks.first:
                prepared = prepare(recipe, folder, _say_nothing)
            learning = _learning(recipe, prepared)
            recipe, ways = _with_way(recipe, prepared, learning, ranks, say)
            validation_seconds = 0.0
            if measure or minutes is not None or epochs is not None:
                recipe, validation_seconds = _fit_updates(
                    recipe, prepared, learning, ranks, minutes, epochs, say
                )
            if ranks.first:
                if ways is not None:
                    write_text(folder / WAYS, json.dumps(ways.to_dict(), indent=1) + "\n")
                # Last: a folder with a recipe is a run, and everything it needs is there.
                recipe.save(folder / RECIPE)
        except BaseException:
            if ranks.first and is_new:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        recipe = type(recipe).model_validate_json(ranks.broadcast_text(recipe.model_dump_json()))
        return _train(
            recipe, folder, prepared, learning, ranks, say, display, resume_command,
            validation_seconds,
        )  # fmt: skip


def resume(
    folder: Path,
    *,
    text: Sequence[Path] = (),
    say: Say = print,
    display: bool = True,
    resume_command: str = "",
) -> Outcome:
    """Go on with a run that was stopped or killed; it ends as if it had not been.

    ``text``: files or folders where its text is now (``runs/moved_text.py``).
    Errors: ``RunError`` if there is nothing to go on with, or its training text has changed; the
    other errors of ``train``.
    """
    run: Run = catalogue.Run.open(folder)
    if not Checkpoints(folder / "training").exists and has_learned(folder):
        raise RunError(
            f"{folder / 'training'} is gone, so this run cannot be trained further; its model "
            f"still works. To train from its weights: dragoman train FILES --from {folder}"
        )
    run = with_text(run, text)
    run.require_text("train", "dev", "test")
    check_unchanged(run.recipe, run.notes(), folder, say)
    with Ranks.joined() as ranks, locked(folder) if ranks.first else nullcontext():
        prepared = prepare(run.recipe, folder, say if ranks.first else _say_nothing)
        learning = _learning(run.recipe, prepared)
        return _train(run.recipe, folder, prepared, learning, ranks, say, display, resume_command)


def begin_or_resume(
    recipe: Recipe,
    folder: Path,
    *,
    start_from: Run | None = None,
    say: Say = print,
    take: ModelPart | None = None,
    measure: bool = True,
    resume_command: str = "",
) -> Outcome:
    """``train``, or ``resume`` where the training was begun already: for one of several.

    Errors: those of both.
    """
    if (folder / RECIPE).is_file():
        return resume(folder, say=say, resume_command=resume_command)
    return train(
        recipe, folder, start_from=start_from, take=take, say=say, measure=measure,
        resume_command=resume_command,
    )  # fmt: skip


def count_updates(recipe: Recipe, minutes: float, say: Say = print) -> Recipe:
    """The recipe with as many updates as this machine makes in so many minutes, validations
    included, by its fastest way: for trainings that are to have equally many, and to be computed
    alike. Nothing counts them again.

    Errors: as ``train``.
    """
    with Ranks.joined() as ranks, TemporaryDirectory() as folder:
        learn_vocabularies(recipe, Path(folder), _say_nothing)
        prepared = prepare(recipe, Path(folder), _say_nothing)
        learning = _learning(recipe, prepared)
        recipe, _ = _with_way(recipe, prepared, learning, ranks, say)
        counted, _ = _fit_updates(recipe, prepared, learning, ranks, minutes, None, say)
    training = counted.training.model_copy(update={"minutes": 0.0})
    return counted.model_copy(update={"training": training})


def _train(
    recipe: Recipe,
    folder: Path,
    prepared: Prepared,
    learning: _Learning,
    ranks: Ranks,
    say: Say,
    display: bool,
    resume_command: str,
    validation_seconds: float = 0.0,
) -> Outcome:
    """The one place where data, model and training meet.

    ``validation_seconds``: of one validation, where that was measured.
    """

    def keep(corrected: TrainingSettings) -> None:
        recipe.model_copy(update={"training": corrected}).save(folder / RECIPE)

    task, forms, settings = recipe.spec, prepared.forms, recipe.training
    model = learning.model
    if not Checkpoints(folder / "training").exists and (folder / WEIGHTS).is_file():
        fill_model(model, folder / WEIGHTS, str(folder / RECIPE))
        refresh(model)
    parts = catalogue.runtime_of(task).parts()
    validation = parts.validation(model, recipe, forms, prepared.dev, ranks.device)
    if validation.left_out and ranks.first:
        say(
            f"of {len(prepared.dev):,} dev {task.noun}, "
            f"{plural(validation.left_out, 'is', 'are')} {validation.without}: validation is of "
            f"the other {len(prepared.dev) - validation.left_out:,}"
        )
    elif not validation.pairs and settings.validate_every and ranks.first:
        say(f"there are no dev {task.noun}: the model is not validated while it trains")
    cut = catalogue.runtime_of(task).cut_off(prepared.train, recipe, forms) if ranks.first else 0
    if cut:
        say(
            f"of {len(prepared.train):,} {task.noun}, {plural(cut, 'is', 'are')} longer than what "
            f"is read of each (plan.context = {recipe.plan.context:,}): what is behind is not "
            "learned from"
        )
    is_told = bool(settings.ctc_weight) and ranks.first
    if is_told and (told := without_room(prepared.train, model, recipe.source)):
        say(told)
    trainer = Trainer(
        model,
        learning.objective,
        settings,
        seed=recipe.seed,
        batches=learning.batches,
        schedule=planned_schedule(settings, recipe.model.model_dim),
        folder=folder,
        evaluate=validation if validation.pairs else None,
        lower_is_better=task.metrics[settings.metric].better == "lower",
        listeners=[
            make_display(
                task,
                settings.updates,
                settings.line_every_seconds,
                fills=seconds_to_fill(settings),
            )
        ]
        if display
        else [],
        ranks=ranks,
        resume_command=resume_command,
        correction=Correction(keep, recipe.model.model_dim, validation_seconds),
    )
    outcome = trainer.run()
    return replace(outcome, epochs=outcome.update / learning.plan.updates_per_epoch())


def _objective(model: Network, recipe: Recipe, prepared: Prepared) -> Objective:
    """What training minimises."""
    settings = recipe.training
    objective = catalogue.runtime_of(recipe.spec).parts().objective(model, settings.label_smoothing)
    if settings.ctc_weight:
        return JointCtc(objective, settings.ctc_weight)
    layers = model.attentions_of("cross")
    head = AligningHead.taught(settings.guided, layers)
    if head is None or prepared.links is None:
        return objective
    assert head.head is not None
    return GuidedAlignment(
        objective,
        prepared.links,
        (starts_of(prepared.forms.source), starts_of(prepared.forms.target)),
        attention=layers[head.layer].name,
        head=head.head,
        weight=settings.guided.weight,
    )


def _with_way(
    recipe: Recipe, prepared: Prepared, learning: _Learning, ranks: Ranks, say: Say
) -> tuple[Recipe, MeasuredWays | None]:
    """The recipe with the way that trains its model the fastest on this machine, and what was
    measured; None where the recipe has the way, or nothing is to be measured."""
    settings = recipe.training
    here = this_machine(gpu_name(ranks.device))
    holds = settings.way is not None and settings.way.machine == here
    if ranks.any(ranks.first and (holds or not measures())):
        return recipe, None
    found = fastest_way(
        learning.model, learning.objective, settings, learning.batches,
        ranks=ranks, remembered=cache_folder(), work=_work(recipe, prepared),
    )  # fmt: skip
    say(f"computed by {found.summary(recipe.spec.counted)}")
    training = settings.model_copy(update={"way": found.way})
    return recipe.model_copy(update={"training": training}), found


def _work(recipe: Recipe, prepared: Prepared) -> str:
    """All that decides how long an update takes: what is measured of it holds for this."""
    training, plan = recipe.training, recipe.plan
    parts = (
        recipe.task, recipe.model.model_dump_json(), [form.size for form in prepared.forms],
        plan.model_dump_json(), recipe.masking.model_dump_json(), training.label_smoothing,
        training.guided.model_dump_json(), training.precision, training.kernels,
        training.ctc_weight,
    )  # fmt: skip
    return json.dumps(parts)


class _Learning(NamedTuple):
    """What is trained, on what."""

    model: Network
    """With fresh weights. What is measured of it leaves them as they are."""
    objective: Objective
    plan: Plan
    batches: TrainingBatches


def _learning(recipe: Recipe, prepared: Prepared) -> _Learning:
    parts = catalogue.runtime_of(recipe.spec).parts()
    examples = parts.examples(prepared.train, recipe, prepared.forms)
    plan = Plan(examples, recipe.bounded_plan, recipe.seed, examples.sums)
    torch.manual_seed(torch_seed(recipe.seed))
    model = build_model(recipe, *prepared.forms)
    objective = _objective(model, recipe, prepared)
    return _Learning(model, objective, plan, TrainingBatches(plan, examples))


def _fit_updates(
    recipe: Recipe,
    prepared: Prepared,
    learning: _Learning,
    ranks: Ranks,
    minutes: float | None,
    epochs: float | None,
    say: Say,
) -> tuple[Recipe, float]:
    """Turn minutes or epochs into updates, and say what the run will cost.

    All processes measure, at the same time and each its share, as they will train; what follows
    from it is for the first to say. -> the recipe, and the seconds of a validation (0: not
    measured).
    """
    forms, settings = prepared.forms, recipe.training
    model, objective, plan, batches = learning
    if plan.left_out.examples and ranks.first:
        limits = "plan.max_source, plan.max_target"
        if plan.settings != recipe.plan:
            limits += ", model.positions"
        say(f"left out: {plan.left_out.summary()} ({limits})")
    measured = measure_throughput(model, objective, settings, batches, ranks=ranks)
    if not ranks.first:
        return recipe, 0.0
    per_epoch, validation = plan.updates_per_epoch(), 0.0
    if minutes is not None:
        if settings.validate_every:
            validation = _time_validation(model, recipe, forms, prepared.dev, ranks.device)
        recipe, validation = for_minutes(recipe, minutes, measured, validation)
    elif epochs is not None:
        recipe = with_updates(recipe, round(epochs * per_epoch))
    say(cost_summary(recipe, measured, per_epoch))
    length = prepared.train.total("target") / len(prepared.train) + 1
    if minutes is not None and (warning := too_short(recipe, measured, per_epoch, length)):
        say(warning)
    return recipe, validation


def _time_validation(
    model: Network, recipe: Recipe, forms: Forms, pairs: Sequence[Pair], device: torch.device
) -> float:
    """About how many seconds a validation on ``pairs`` will take, by timing some of them.

    The model may be untrained: it would not know where to end, so that its outputs are kept to the
    length of their sources.
    """
    search = recipe.search.model_copy(update={"max_extra": 0, "max_length": None, "min_length": 0})
    some = pairs[:: -(-len(pairs) // _TIMED) or 1]
    recipe = recipe.model_copy(update={"search": search})
    parts = catalogue.runtime_of(recipe.spec).parts()
    validation = parts.validation(model, recipe, forms, some, device)
    if not validation.pairs:
        return 0.0
    training = model.training
    model.eval()
    with torch.no_grad():
        validation(0)  # warms up
        began = time.perf_counter()
        validation(0)
        seconds = time.perf_counter() - began
    model.train(training)

    def work(examples: int) -> float:
        # Of those that are not searched for only the loss is taken, about a quarter of the work.
        searched = validation.searched(examples)
        return searched + (examples - searched) / 4

    return seconds / work(len(validation.pairs)) * work(len(pairs))


def _say_nothing(_: str) -> None:
    pass


def average_run(folder: Path, last: int, to: Path | None) -> tuple[Path, list[int]]:
    """Replace the weights of a run (or write ``to``) by the mean of its ``last`` snapshots.

    -> the file, and the updates whose weights went into it. Errors: ``RunError`` without any, if
    one is missing or damaged, or if the run's own weights are asked for while it is trained;
    ``FileError`` when the disk is full.
    """
    run = catalogue.Run.open(folder)
    with locked(folder) if to is None else nullcontext():
        checkpoints = Checkpoints(folder / "training")
        checkpoints.check_snapshots(last)
        snapshots = checkpoints.snapshots()[-last:]
        if not snapshots:
            raise RunError(
                f"{folder / 'training'} holds no snapshots to average; they are kept while "
                "training (training.keep_snapshots) and are gone if that folder was deleted"
            )
        updates = [update for update, _ in snapshots]
        path = to or run.folder / WEIGHTS
        weights = average_weights([file for _, file in snapshots])
        # "updates" tells the trainer that these were not measured, should the run go on.
        save_weights(path, weights, {"weights": "average", "updates": " ".join(map(str, updates))})
    return path, updates
