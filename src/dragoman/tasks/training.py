"""Trains by a recipe: puts data, model, objective and trainer together in one place.

``train`` and ``resume`` make a run folder for any task. ``new_run.py`` writes what it holds before
the first update, and ``engine/engine.py`` opens the finished run.
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
from typing import Any

import torch

from dragoman.base.atomic import write_text
from dragoman.base.errors import RunError
from dragoman.base.task import ModelPart
from dragoman.base.wording import plural
from dragoman.data.hashing import torch_seed
from dragoman.data.plan import Plan
from dragoman.data.word_links import starts_of
from dragoman.engine.alignment_head import AligningHead
from dragoman.forms.form import Pair
from dragoman.models.interface import Network, writing
from dragoman.native.measured import measures
from dragoman.nn.linear import refresh
from dragoman.runs.corpora import learn_vocabularies, with_text
from dragoman.runs.lock import LOCK, lock_folder
from dragoman.runs.model import build_model, fill_model
from dragoman.runs.prepare import Prepared, Say, check_unchanged, prepare
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import RECIPE, STEPS, WAYS, WEIGHTS, Run, refuse_occupied, refuse_run
from dragoman.runs.user_cache import cache_folder
from dragoman.sizing.minutes import cost_summary, for_minutes, too_short, with_updates
from dragoman.tasks import catalogue
from dragoman.tasks.new_run import fill_new_run, has_learned
from dragoman.tasks.shared.examples import Pairs, TrainingBatches
from dragoman.tasks.shared.validation import Validation
from dragoman.tasks.teachers import predictions_of
from dragoman.tasks.tuning import blend, reading
from dragoman.training.checkpoint import Checkpoints
from dragoman.training.distributed import Ranks, gpu_name
from dragoman.training.fastest_way import MeasuredWays, fastest_way, measure_throughput
from dragoman.training.losses.objectives import (
    Consistent,
    GuidedAlignment,
    JointCtc,
    Objective,
    Taught,
    without_room,
)
from dragoman.training.minutes import Correction, planned_schedule, seconds_to_fill
from dragoman.training.progress import make_display
from dragoman.training.settings import TrainingSettings, this_machine
from dragoman.training.trainer import Outcome, Trainer
from dragoman.training.weights import average_weights, save_weights

_TIMED = 32
"""The number of dev examples on which a validation is timed."""


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

    ``minutes`` or ``epochs`` replace the recipe's number of updates; for ``minutes``, the speed of
    this machine is measured for some seconds. The number is written into the run's recipe.
    ``start_from`` is a run whose vocabulary and best weights are taken over (fine-tuning); the
    recipe must be made for its model (``sizing.for_fine_tuning``). ``take`` limits this to one part
    of that run, with its vocabulary, as far as it fits (``new_run.py``). ``say`` receives messages
    for people, ``display`` shows progress, and an interrupted run prints ``resume_command``. With
    ``measure=False`` and a fixed number of updates, no duration is estimated. Unless the recipe
    names a way to train, the fastest on this machine is measured and written into the run's recipe
    and into ``WAYS`` in its folder.
    Errors: ``RunError`` if the folder is a run already or another process is at work in it,
    ``DataError`` for unusable text, ``TrainingError`` when training cannot go on, ``FileError``
    when the disk is full.
    """
    is_new = not folder.exists() or (folder.is_dir() and not _contents(folder))
    with ExitStack() as stack:
        ranks = stack.enter_context(Ranks.join())
        if ranks.first:
            if not (folder / LOCK).exists():  # else another process is at work, or was killed
                refuse_occupied(folder)
            stack.enter_context(lock_folder(folder))
            refuse_run(folder)
        try:
            if ranks.first:
                prepared = fill_new_run(recipe, folder, start_from, take, say)
            # Each process may have measured this machine: the recipe of the first one counts.
            recipe = _of_first(recipe, ranks)
            if not ranks.first:
                prepared = prepare(recipe, folder, _say_nothing)
            training = _Training(recipe, folder, prepared, ranks, say)
            ways = training.choose_way()
            if measure or minutes is not None or epochs is not None:
                training.fit_updates(minutes, epochs)
            if ranks.first:
                if ways is not None:
                    write_text(folder / WAYS, json.dumps(ways.to_dict(), indent=1) + "\n")
                # The recipe is written last: a folder with a recipe is a complete run.
                training.recipe.save(folder / RECIPE)
        except BaseException:
            if ranks.first and is_new:
                _empty(folder)
            raise
        training.recipe = _of_first(training.recipe, ranks)
        return training.run(display, resume_command)


def _contents(folder: Path) -> list[Path]:
    """List the contents of a run folder except for its steps."""
    return [path for path in folder.iterdir() if path.name != STEPS]


def _empty(folder: Path) -> None:
    """Remove a folder. If it contains steps before a run (``STEPS``), keep these and remove the
    rest."""
    if not (folder / STEPS).exists():
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in _contents(folder):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def resume(
    folder: Path,
    *,
    text: Sequence[Path] = (),
    say: Say = print,
    display: bool = True,
    resume_command: str = "",
) -> Outcome:
    """Continue a run that was stopped or killed; the result equals that of an uninterrupted run.

    ``text`` names files or folders that now hold its text (``runs/corpora.py``).
    Errors: ``RunError`` if there is nothing to continue, or the training text has changed;
    otherwise those of ``train``.
    """
    run: Run = catalogue.Run.open(folder)
    if not Checkpoints(folder / "training").exists and has_learned(folder):
        raise RunError(
            f"{folder / 'training'} is missing, so this run cannot be resumed. Its model still "
            f"works. To train from its weights: dragoman train FILES --from {folder}"
        )
    run = with_text(run, text)
    run.require_text("train", "dev", "test")
    check_unchanged(run.recipe, run.notes(), folder, say)
    with Ranks.join() as ranks, lock_folder(folder) if ranks.first else nullcontext():
        prepared = prepare(run.recipe, folder, say if ranks.first else _say_nothing)
        return _Training(run.recipe, folder, prepared, ranks, say).run(display, resume_command)


def begin_or_resume(
    recipe: Recipe,
    folder: Path,
    *,
    say: Say = print,
    resume_command: str = "",
    **of_new: Any,
) -> Outcome:
    """Train a run, or resume it if its training has begun. Callers that train several runs use
    this. ``of_new``: further arguments of ``train``.

    Errors: those of ``train`` and ``resume``.
    """
    if (folder / RECIPE).is_file():
        return resume(folder, say=say, resume_command=resume_command)
    return train(recipe, folder, say=say, resume_command=resume_command, **of_new)


def count_updates(recipe: Recipe, minutes: float, say: Say = print) -> Recipe:
    """Return the recipe with the number of updates that this machine completes in ``minutes``,
    validations included, in its fastest way. Training runs that must have the same number of
    updates and the same arithmetic share this recipe instead of counting again.

    Errors: those of ``train``.
    """
    with Ranks.join() as ranks, TemporaryDirectory() as folder:
        learn_vocabularies(recipe, Path(folder), _say_nothing)
        prepared = prepare(recipe, Path(folder), _say_nothing)
        training = _Training(recipe, Path(folder), prepared, ranks, say)
        training.choose_way()
        training.fit_updates(minutes, None)
        counted = _of_first(training.recipe, ranks)
    settings = counted.training.model_copy(update={"minutes": 0.0})
    return counted.model_copy(update={"training": settings})


def _of_first(recipe: Recipe, ranks: Ranks) -> Recipe:
    """Return the recipe of the first process, in every process."""
    return type(recipe).model_validate_json(ranks.broadcast_text(recipe.model_dump_json()))


class _Training:
    """A training in one of its processes: the model, its objective and its batches."""

    def __init__(
        self, recipe: Recipe, folder: Path, prepared: Prepared, ranks: Ranks, say: Say
    ) -> None:
        self.recipe, self._folder, self._prepared, self._ranks = recipe, folder, prepared, ranks
        self._say = say if ranks.first else _say_nothing
        self._runtime = catalogue.runtime_of(recipe.spec)
        self._parts = self._runtime.parts()
        self._validation_seconds = 0.0
        """The measured duration of one validation, or 0."""
        self._examples = self._parts.examples(prepared.train, recipe, prepared.forms)
        self._plan = Plan(self._examples, recipe.bounded_plan, recipe.seed, self._examples.sums)
        self._batches = TrainingBatches(self._plan, self._examples)
        torch.manual_seed(torch_seed(recipe.seed))
        self._model = build_model(recipe, *prepared.forms)
        """A freshly initialised network. Measurements restore its weights."""
        self._objective = self._build_objective()

    def _build_objective(self) -> Objective:
        """Build the objective that training minimises."""
        model, prepared, settings = self._model, self._prepared, self.recipe.training
        if settings.consistency:
            return Consistent(writing(model), settings.label_smoothing, settings.consistency)
        if self.recipe.data.teachers and settings.teaching:
            assert isinstance(self._examples, Pairs)  # teachers are translators
            predictions = predictions_of(
                self.recipe, self._examples, prepared.train, self._ranks.device, self._say
            )
            return Taught(writing(model), predictions, settings.label_smoothing, settings.teaching)
        objective = self._parts.objective(model, settings.label_smoothing)
        if settings.ctc_weight:
            return JointCtc(objective, settings.ctc_weight)
        layers = model.attentions_of("cross")
        head = AligningHead.of_guided(settings.guided, layers)
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

    def _validation(self, recipe: Recipe, pairs: Sequence[Pair]) -> Validation[Any]:
        forms, device = self._prepared.forms, self._ranks.device
        return self._parts.validation(self._model, recipe, forms, pairs, device)

    # ---- measuring

    def choose_way(self) -> MeasuredWays | None:
        """Write the fastest way to train the model on this machine into the recipe, and return the
        measurement. It is None if the recipe names the way already, or nothing may be measured."""
        settings, ranks = self.recipe.training, self._ranks
        here = this_machine(gpu_name(ranks.device))
        holds = settings.way is not None and settings.way.machine == here
        if ranks.any(ranks.first and (holds or not measures())):
            return None
        measured = fastest_way(
            self._model, self._objective, settings, self._batches,
            ranks=ranks, remembered=cache_folder(), work=self._work(),
        )  # fmt: skip
        self._say(f"computed by {measured.summary(self.recipe.spec.counted)}")
        training = settings.model_copy(update={"way": measured.way})
        self.recipe = self.recipe.model_copy(update={"training": training})
        return measured

    def _work(self) -> str:
        """Return a key of everything that decides how long an update takes."""
        recipe, forms = self.recipe, self._prepared.forms
        training, plan = recipe.training, recipe.plan
        parts = (
            recipe.task, recipe.model.model_dump_json(), [form.size for form in forms],
            plan.model_dump_json(), recipe.masking.model_dump_json(), training.label_smoothing,
            training.guided.model_dump_json(), training.precision, training.kernels,
            training.ctc_weight, training.consistency, training.teaching, len(recipe.data.teachers),
        )  # fmt: skip
        return json.dumps(parts)

    def fit_updates(self, minutes: float | None, epochs: float | None) -> None:
        """Turn minutes or epochs into updates of the recipe, and say what the run will cost.

        All processes measure at the same time, each with its share, as in training; only the first
        one uses the result.
        """
        recipe, plan, prepared = self.recipe, self._plan, self._prepared
        if plan.left_out.examples:
            limits = "plan.max_source, plan.max_target"
            if plan.settings != recipe.plan:
                limits += ", model.positions"
            self._say(f"left out: {plan.left_out.summary()} ({limits})")
        measured = measure_throughput(
            self._model, self._objective, recipe.training, self._batches, ranks=self._ranks
        )
        if not self._ranks.first:
            return
        per_epoch, validation = plan.updates_per_epoch(), 0.0
        if minutes is not None:
            if recipe.training.validate_every:
                validation = self._time_validation()
            recipe, self._validation_seconds = for_minutes(recipe, minutes, measured, validation)
        elif epochs is not None:
            recipe = with_updates(recipe, round(epochs * per_epoch))
        self.recipe = recipe
        self._say(cost_summary(recipe, measured, per_epoch))
        length = prepared.train.total("target") / len(prepared.train) + 1
        if minutes is not None and (warning := too_short(recipe, measured, per_epoch, length)):
            self._say(warning)

    def _time_validation(self) -> float:
        """Estimate the seconds of a validation on dev by timing some of its examples.

        An untrained model does not know where to end, so its outputs are limited to the length of
        their sources.
        """
        brief = {"max_extra": 0, "max_length": None, "min_length": 0}
        search = self.recipe.search.model_copy(update=brief)
        pairs = self._prepared.dev
        some = pairs[:: -(-len(pairs) // _TIMED) or 1]
        validation = self._validation(self.recipe.model_copy(update={"search": search}), some)
        if not validation.pairs:
            return 0.0
        with reading(self._model):
            validation(0)  # warm-up
            began = time.perf_counter()
            validation(0)
            seconds = time.perf_counter() - began

        def work(examples: int) -> float:
            # Other examples only have their loss computed, about a quarter of the work.
            searched = validation.search_count(examples)
            return searched + (examples - searched) / 4

        return seconds / work(len(validation.pairs)) * work(len(pairs))

    # ---- training

    def run(self, display: bool, resume_command: str) -> Outcome:
        """Train, from the last checkpoint if there is one."""
        recipe, folder, model = self.recipe, self._folder, self._model
        task, settings, prepared = recipe.spec, recipe.training, self._prepared

        def keep(corrected: TrainingSettings) -> None:
            recipe.model_copy(update={"training": corrected}).save(folder / RECIPE)

        if not Checkpoints(folder / "training").exists and (folder / WEIGHTS).is_file():
            fill_model(model, folder / WEIGHTS, str(folder / RECIPE))
            refresh(model)
        validation = self._validation(recipe, prepared.dev)
        if left := validation.left_out:
            self._say(
                f"of {len(prepared.dev):,} dev {task.noun}, {plural(left, 'is', 'are')} "
                f"{validation.without}: validation is of the other {len(prepared.dev) - left:,}"
            )
        elif not validation.pairs and settings.validate_every:
            self._say(f"there are no dev {task.noun}: the model is not validated while it trains")
        if cut := self._runtime.cut_off(prepared.train, recipe, prepared.forms):
            self._say(
                f"of {len(prepared.train):,} {task.noun}, {plural(cut, 'is', 'are')} longer than "
                f"plan.context = {recipe.plan.context:,}; the rest of each is not used"
            )
        if settings.ctc_weight and (problem := without_room(prepared.train, model, recipe.source)):
            self._say(problem)
        fills, every = seconds_to_fill(settings), settings.line_every_seconds
        trainer = Trainer(
            model,
            self._objective,
            settings,
            seed=recipe.seed,
            batches=self._batches,
            schedule=planned_schedule(settings, recipe.model.model_dim),
            folder=folder,
            evaluate=validation if validation.pairs else None,
            lower_is_better=task.metrics[settings.metric].better == "lower",
            listeners=[make_display(task, settings.updates, every, fills=fills)] if display else [],
            ranks=self._ranks,
            resume_command=resume_command,
            correction=Correction(keep, recipe.model.model_dim, self._validation_seconds),
        )
        outcome = trainer.run()
        if settings.blend and self._ranks.first and outcome.reason != "interrupted":
            blend(recipe, folder, model, prepared.forms, self._ranks.device, self._say)
        return replace(outcome, epochs=outcome.update / self._plan.updates_per_epoch())


def _say_nothing(_: str) -> None:
    pass


def average_run(folder: Path, last: int, to: Path | None) -> tuple[Path, list[int]]:
    """Replace the weights of a run by the mean of its ``last`` snapshots, or write the mean to
    ``to``.

    -> the file, and the updates whose weights were averaged.
    Errors: ``RunError`` if there is no snapshot, if one is missing or damaged, or if the run's own
    weights would be replaced while it is trained; ``FileError`` when the disk is full.
    """
    run = catalogue.Run.open(folder)
    with lock_folder(folder) if to is None else nullcontext():
        checkpoints = Checkpoints(folder / "training")
        checkpoints.check_snapshots(last)
        snapshots = checkpoints.snapshots()[-last:]
        if not snapshots:
            raise RunError(
                f"{folder / 'training'} has no snapshots to average. Training keeps them there "
                "(training.keep_snapshots) until the folder is deleted"
            )
        updates = [update for update, _ in snapshots]
        path = to or run.folder / WEIGHTS
        weights = average_weights([file for _, file in snapshots])
        # "updates" tells the trainer that these weights were not validated, if the run is resumed.
        save_weights(path, weights, {"weights": "average", "updates": " ".join(map(str, updates))})
    return path, updates


def small_model(changes: Sequence[str]) -> Network:
    """Train by the recipe ``demo`` with ``changes``, and return the model without its run."""
    with TemporaryDirectory() as folder:
        small = Path(folder) / "small"
        train(catalogue.Recipe.load("demo", changes), small, say=lambda _: None, display=False)
        return catalogue.Run.open(small).model()
