"""The training loop, which makes one update after another, validates, saves, and can be resumed at
any moment.

The trainer gets a model, the batches of each update and a function that evaluates the model; it
does not know recipes, vocabularies or search. What happens after k updates depends only on the
state after k updates, so a run that was killed and resumed has the same result as a run that was
never stopped. The order after every update is: record, snapshot, film, validation, checkpoint, and
once, in a run with a time limit, a new number of updates. When a run is resumed, the updates after
its last checkpoint are repeated.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from dragoman.base.errors import RunError, UntrainableError
from dragoman.base.wording import plural
from dragoman.training.checkpoint import Checkpoints, Film, TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Gradients, Splits
from dragoman.training.interrupt import Interrupted, StopRequest
from dragoman.training.losses.objectives import Objective
from dragoman.training.minutes import (
    Correction,
    Pace,
    awaits_correction,
    can_correct,
    correct,
    planned_schedule,
)
from dragoman.training.records import Listener, MetricsLog, TensorBoard, ValidationRecord
from dragoman.training.schedule import Schedule
from dragoman.training.settings import TrainingSettings
from dragoman.training.update import Batches, Updater
from dragoman.training.validation import Evaluate, Validator
from dragoman.training.weights import average_weights, load_weights

__all__ = ["Batches", "Trainer", "Outcome", "TrainingSettings"]

Reason = Literal["finished", "patience", "interrupted"]


@dataclass(frozen=True)
class Outcome:
    """The result of a training run that was finished or stopped."""

    update: int
    """The number of updates done so far."""
    reason: Reason
    best_value: float | None
    """The best validation score, by the metric of the settings."""
    best_update: int
    epochs: float = math.inf
    """The number of times that each example was seen; infinite if it is not counted."""


class Trainer:
    """Trains one model into one run folder. ``run`` starts the training, or resumes it."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        settings: TrainingSettings,
        *,
        seed: int,
        batches: Batches,
        schedule: Schedule,
        folder: Path,
        evaluate: Evaluate | None = None,
        lower_is_better: bool = True,
        listeners: Sequence[Listener] = (),
        ranks: Ranks | None = None,
        resume_command: str = "",
        correction: Correction | None = None,
    ) -> None:
        """``folder``: the run's folder, which the caller has locked (``runs/lock.py``).

        ``model`` is moved to the ranks' device, and its parameters into flat memory. ``objective``:
        the function whose loss the training minimises. ``schedule``: the learning rate of each
        update, counted from 1. ``lower_is_better``: True if lower values are better for
        ``settings.metric``, which is among the scores that ``evaluate`` measures. ``ranks``: if
        omitted, this process trains alone on the CPU. ``correction``: if omitted, the number of
        updates of a run with a time limit is not recalculated after the first minute.
        """
        self.settings = settings
        self.batches = batches
        self.folder = folder
        self.evaluate = evaluate
        self.ranks = ranks or Ranks()
        self.resume_command = resume_command or f"dragoman resume {folder}"
        self._listeners = list(listeners) if self.ranks.first else []
        self._has_display = bool(self._listeners)
        if settings.tensorboard and self.ranks.first:
            self._listeners.append(TensorBoard(folder / "tensorboard"))
        self._seed = seed
        self._updater = Updater(model, objective, settings, schedule, self.ranks)
        self._checkpoints = Checkpoints(folder / "training")
        self._film = Film(folder / "film", settings, model)
        self._state = TrainingState()
        self._stop = StopRequest()
        path = folder / "model.safetensors"
        self._validator = Validator(
            self._updater, lower_is_better, self._state, self._stop, evaluate, path
        )
        self._correction = correction
        self._pace = Pace()
        self._log: MetricsLog | None = None
        self._saved_when = time.monotonic()

    def run(self) -> Outcome:
        """Train to the end, or until a request to stop (Ctrl-C, SIGTERM). Save the run in either
        case.

        The training continues from the newest checkpoint of the folder, if there is one. Raises
        TrainingError if the training cannot continue, RunError if the checkpoint does not fit, and
        FileError if a checkpoint cannot be written.
        """
        if self.ranks.first:
            self._checkpoints.sweep()
            self._film.sweep()
        with self._stop.listening():
            fresh = self._restore()
            with self._recording():
                if fresh:
                    self._film_if_due()
                    self._save()
                return self._train()

    @contextmanager
    def _recording(self) -> Iterator[None]:
        if not self.ranks.first:
            yield
            return
        self._log = MetricsLog(self.folder / "metrics.jsonl", self._state.metrics_bytes)
        if self._log.position < self._state.metrics_bytes:
            self._say(
                f"{self._log.path} is shorter than when this checkpoint was saved. The missing "
                "records are lost; the training is not affected"
            )
        try:
            for listener in self._listeners:
                listener.begin(self._state.update)
            yield
        finally:
            self._log.close()
            for listener in self._listeners:
                listener.end()

    # ---- the loop

    def _train(self) -> Outcome:
        if self._has_ended():
            return self._outcome()
        self._updater.model.train()
        splits = Splits(self.folder / "training", self.ranks.rank)
        say = self._say if self.ranks.first else _print  # each process splits its own batches
        gradients = self._updater.gradients(self._seed, splits, say)
        self._validate_if_due()  # makes up for a validation that was interrupted
        while not self.ranks.any(self._stop.requested):  # all stop after the same update
            if self._is_done():
                return self._finish()
            self._update(gradients)
            self._snapshot_if_due()
            self._film_if_due()
            self._validate_if_due()
            self._checkpoint_if_due()
            self._correct_if_due()
        return self._stop_here()

    def _update(self, gradients: Gradients) -> None:
        record = self._updater.update(self._state, self.batches, gradients)
        self._pace.count_update(record.seconds)
        if self._log is not None:
            self._log.write(record)
        for listener in self._listeners:
            listener.on_update(record)
        if record.skipped:
            self._complain()

    def _complain(self) -> None:
        """Report that an update was skipped. If too many updates in a row were skipped, save the
        run and raise ``UntrainableError``."""
        state, most = self._state, self.settings.max_bad_updates
        self._say(
            f"update {state.update:,}: loss or gradient is not finite; skipped "
            f"({state.bad_in_a_row} of at most {most} in a row, {state.bad_in_all} in all)"
        )
        if state.bad_in_a_row < most:
            return
        state.bad_in_a_row = 0  # a resumed run may try again
        self._save()
        raise UntrainableError(
            f"stopped at update {state.update:,}: {most} updates in a row had a loss or gradient "
            "that is not finite. The weights from before them are saved. Likely remedies: a "
            "lower learning rate or a longer warm-up (training.schedule), clipped gradients "
            "(training.clip_norm = 1.0), training.precision = fp32. Then continue with: "
            f"{self.resume_command}"
        )

    # ---- what is due after an update

    def _snapshot_if_due(self) -> None:
        update = self._state.update
        settings = self.settings.at(update)
        every = settings.snapshot_every or settings.validate_every
        due = every > 0 and (update % every == 0 or update >= settings.updates)
        if due and self.ranks.first:
            self._checkpoints.snapshot(update, self._updater.weights(), settings.keep_snapshots)

    def _film_if_due(self) -> None:
        if self.ranks.first and self._film.is_due(self._state.update):
            self._film.keep(self._state.update, self._updater.weights())

    def _validate_if_due(self) -> None:
        update = self._state.update
        settings = self.settings.at(update)
        every = settings.validate_every
        if self.evaluate is None or every == 0 or self._state.validated == update:
            return
        if update % every and update < settings.updates:
            return
        if self.ranks.first:
            validate, average = self._validator.validate, self._updater.average
            # After an interruption, the loop stops at once; a resumed run repeats the validation.
            with suppress(Interrupted):
                self._record_validation(
                    validate("ema", average.values) if average else validate("current")
                )
        self._share_state()

    def _record_validation(self, record: ValidationRecord) -> None:
        self._pace.count_validation(record.seconds)
        if self._log is not None:
            self._log.write(record)
        for listener in self._listeners:
            listener.on_validation(record)

    def _checkpoint_if_due(self) -> None:
        update, every = self._state.update, self.settings.checkpoint_every
        minutes = self.settings.checkpoint_minutes
        late = minutes > 0 and time.monotonic() - self._saved_when >= 60 * minutes
        if late or (every > 0 and update % every == 0):
            self._save()

    def _correct_if_due(self) -> None:
        """Recalculate the number of updates from the time that the updates of the first minute
        took. This is done once in a run with a time limit."""
        correction, update = self._correction, self._state.update
        if correction is None or not awaits_correction(self.settings, update):
            return
        first, pace = self.ranks.first, self._pace
        if not self.ranks.any(first and can_correct(self._state.elapsed, pace)):
            return
        planned, text = self.settings.updates, ""
        if first:
            per_validation = pace.per_validation if pace.validations else correction.per_validation
            settings = correct(
                self.settings, update, self._state.elapsed, pace.per_update, per_validation
            )
            correction.keep(settings)
            text = settings.model_dump_json()
        self.settings = TrainingSettings.model_validate_json(self.ranks.broadcast_text(text))
        self._updater.schedule = planned_schedule(self.settings, correction.model_dim)
        self._film.plan(self.settings)
        for listener in self._listeners:
            listener.on_plan(self.settings.updates)
        if self.settings.updates != planned:
            how = "faster" if self.settings.updates > planned else "slower"
            self._say(
                f"the first minute was {how} than measured before: {self.settings.updates:,} "
                f"updates fit into {plural(self.settings.minutes, 'minute')}, not {planned:,}"
            )

    def _is_done(self) -> bool:
        out_of_patience = 0 < self.settings.patience <= self._state.validations_without_gain
        return out_of_patience or self._state.update >= self.settings.updates

    def _has_ended(self) -> bool:
        """Return True if the training is done and the weights in model.safetensors are final."""
        return self._is_done() and self._state.finished == self._state.update

    # ---- endings

    def _finish(self) -> Outcome:
        """Choose the weights in model.safetensors, and save the run for the last time. A second
        call changes nothing."""
        if self.ranks.first:
            with suppress(Interrupted):
                self._choose_weights()
                self._state.finished = self._state.update
        self._share_state()
        if self._state.finished != self._state.update:
            return self._stop_here()
        self._save()
        return self._outcome()

    def _choose_weights(self) -> None:
        settings, state, flat = self.settings, self._state, self._updater.flat
        files = [path for number, path in self._checkpoints.snapshots() if number <= state.update]
        measured = self.evaluate is not None and settings.validate_every > 0
        if settings.average_last and files and settings.final_weights in ("better", "average"):
            average, value = torch.zeros_like(flat.values), None
            flat.fill(average, average_weights(files[-settings.average_last :]))
            if measured:
                record = self._validator.validate("average", average)
                self._record_validation(record)
                value = record.scores[settings.metric]
            if not measured or settings.final_weights == "average":
                self._validator.keep("average", value, average)
                return
        if state.best_value is None or settings.final_weights == "last":
            if measured and settings.final_weights != "last":
                self._say(
                    f"no validation gave a finite {settings.metric}, so {self._validator.path} "
                    "contains the last weights instead of the best"
                )
            moving = self._updater.average
            self._validator.keep("last", values=None if moving is None else moving.values)

    def _stop_here(self) -> Outcome:
        self._save()
        self._say(
            f"stopped at update {self._state.update:,} of {self.settings.updates:,}; everything "
            f"is saved. Continue with: {self.resume_command}"
        )
        return self._outcome("interrupted")

    def _outcome(self, reason: Reason | None = None) -> Outcome:
        state = self._state
        if reason is None:
            reason = "finished" if state.update >= self.settings.updates else "patience"
        return Outcome(state.update, reason, state.best_value, state.best_update)

    # ---- the state, in files and in other processes

    def _restore(self) -> bool:
        """Load the newest checkpoint, if there is one, and give all processes the same state.
        Return True if there is no checkpoint, so that the run begins."""
        has_checkpoint = self.ranks.first and self._checkpoints.exists
        checkpoint = self._checkpoints.latest() if has_checkpoint else None
        if checkpoint is not None:
            self._state.take(checkpoint.state)
            if not checkpoint.state.files:
                self._say(
                    "an older version of dragoman wrote this checkpoint without hashes, so "
                    "damage cannot be detected"
                )
            if not self._has_ended() and self.settings.final_weights in ("better", "average"):
                self._checkpoints.check_snapshots(self.settings.average_last)
            self._forget_lost_weights()
        self._share_state()
        self._updater.restore(checkpoint, self._state)
        # The first process chooses for all processes, because their machines may differ.
        warning = self._updater.repeat_choices(self._state) if self.ranks.first else None
        self._share_state()
        if warning:
            self._say(warning)
        if not self.ranks.first:
            self._updater.repeat_choices(self._state)
        return checkpoint is None

    def _forget_lost_weights(self) -> None:
        """Forget the best weights if their file was removed, damaged or replaced.

        If the run has ended and the file is an average of snapshots, nothing is changed.
        """
        state, ended = self._state, self._has_ended()
        if state.best_value is None and not ended:
            return  # none were kept yet
        path = self._validator.path
        try:
            metadata = load_weights(path).metadata
            replaced = "updates" in metadata  # by ``dragoman average``
            lost = f"{path} was replaced by an average of snapshots" if replaced else ""
            if (
                metadata.get("update", "").isdecimal()
                and int(metadata["update"]) < state.best_update
            ):
                lost = f"{path} is older than the weights of update {state.best_update:,}"
        except RunError:
            replaced, lost = False, f"{path} is missing or damaged"
        if lost and not (replaced and ended):
            state.best_value = state.best_loss = None
            state.best_update = state.finished = 0
            if ended:  # so that the last weights are validated again
                state.validated = 0
            self._say(f"{lost}. The best weights are chosen again, by the following validations")

    def _save(self) -> None:
        if self._log is not None:
            self._log.force_to_disk()
            self._state.metrics_bytes = self._log.position
            self._checkpoints.save(self._state, self._updater.weights(), self._updater.moments())
        self._saved_when = time.monotonic()

    def _share_state(self) -> None:
        """Make all processes use the state of the first process."""
        text = self.ranks.broadcast_text(self._state.to_json() if self.ranks.first else "")
        self._state.take(TrainingState.from_json(text, self.folder))

    def _say(self, text: str) -> None:
        """Tell the user. Only the first process does, because all have the same to say."""
        for listener in self._listeners:
            listener.on_message(text)
        if self.ranks.first and not self._has_display:
            _print(text)


def _print(text: str) -> None:
    print(text, file=sys.stderr)
