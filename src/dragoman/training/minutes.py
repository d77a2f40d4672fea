"""Minutes turned into updates: before a run starts, and once more after its first minute.

What some seconds measure is what the machine gave in these seconds; somebody else's work may begin
or end. So a run that was given a time counts its updates again after the first minute, and never
after that. The recipe says so before it applies, with the plan that was followed until then
(``TrainingSettings.first_plan``): a run that is resumed, or made again from its recipe, does the
same after the same update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragoman.training.schedule import Schedule, make_schedule
from dragoman.training.settings import FirstPlan, TrainingSettings

VALIDATIONS = 20
"""In a run, or fewer where they would take more than their share of the time."""
SHARE = 0.1
"""The share of the time of a run that validations may take."""

_FIRST_MINUTE = 60.0
_MIN_TIMED = 3
_NEAR = 0.05
"""A plan that is off by less stays as it is."""


@dataclass
class Pace:
    """The time that updates and validations took, in seconds."""

    updates: int = 0
    update_seconds: float = 0.0
    validations: int = 0
    validation_seconds: float = 0.0

    def count_update(self, seconds: float) -> None:
        """The first one, which warms up, is left out."""
        self.updates += 1
        if self.updates > 1:
            self.update_seconds += seconds

    def count_validation(self, seconds: float) -> None:
        """Counts one more validation and its seconds."""
        self.validations += 1
        self.validation_seconds += seconds

    @property
    def per_update(self) -> float:
        """Seconds of an update; there must be two."""
        return self.update_seconds / (self.updates - 1)

    @property
    def per_validation(self) -> float:
        """Seconds of a validation; there must be one."""
        return self.validation_seconds / self.validations


@dataclass(frozen=True)
class Correction:
    """The information by which a trainer corrects its plan."""

    keep: Callable[[TrainingSettings], None]
    """Makes the corrected settings last, before they apply. Called in the first process alone."""
    model_dim: int
    """The width of the model, for the learning rate."""
    per_validation: float = 0.0
    """Seconds of a validation, as measured before the start; 0: not known."""


def updates_in(seconds: float, per_update: float, per_validation: float) -> tuple[int, int]:
    """The number of updates that fit into ``seconds``, at least 1, and that of validations.

    The validations are at most ``VALIDATIONS``, and at least the one at the end.
    """
    validations = VALIDATIONS
    if per_validation > 0:
        validations = max(1, int(min(VALIDATIONS, SHARE * seconds / per_validation)))
    return max(1, int((seconds - validations * per_validation) / per_update)), validations


def awaits_correction(settings: TrainingSettings, update: int) -> bool:
    """True if the plan of a run after ``update`` updates is still to be corrected."""
    return settings.minutes > 0 and settings.first_plan is None and update < settings.updates


def seconds_to_fill(settings: TrainingSettings) -> float:
    """The seconds that the corrected plan of a run will fill; 0 if it will not be corrected."""
    seconds = 60 * settings.minutes
    return seconds if settings.first_plan is None and seconds > _FIRST_MINUTE else 0.0


def can_correct(elapsed: float, pace: Pace) -> bool:
    """True if the first minute is over, and enough updates were timed in it."""
    return elapsed >= _FIRST_MINUTE and pace.updates > _MIN_TIMED


def corrected(
    settings: TrainingSettings,
    update: int,
    elapsed: float,
    per_update: float,
    per_validation: float,
) -> TrainingSettings:
    """The settings for the rest of a run that has made ``update`` updates in ``elapsed`` seconds.

    ``per_validation``: 0 where it is not known; as many as were planned for
    the time then take their whole share.
    """
    schedule = settings.schedule
    first = FirstPlan(
        until=update,
        updates=settings.updates,
        validate_every=settings.validate_every,
        snapshot_every=settings.snapshot_every,
        warmup=schedule.warmup,
    )
    left = max(0.0, 60 * settings.minutes - elapsed)
    wanted = planned = 0
    if every := settings.validate_every:
        planned = -(-(settings.updates - update) // every)
        # As many as stood in the plan for so much time.
        wanted = max(1, round(settings.updates / every * left / (60 * settings.minutes)))
        per_validation = per_validation or SHARE * left / wanted
    rest, validations = updates_in(left, per_update, per_validation if wanted else 0.0)
    same_updates = abs(update + rest - settings.updates) <= _NEAR * settings.updates
    if same_updates and planned <= validations:
        return settings.model_copy(update={"first_plan": first})
    total = update + rest
    if update < schedule.warmup:  # else the rate has had its height already
        warmup = min(schedule.warmup, max(update, total // 4, 1))
        schedule = schedule.model_copy(update={"warmup": warmup})
    scale = total / settings.updates
    return settings.model_copy(
        update={
            "first_plan": first,
            "updates": total,
            "validate_every": -(-rest // min(wanted, validations)) if wanted else 0,
            "snapshot_every": settings.snapshot_every
            and max(1, round(settings.snapshot_every * scale)),
            "schedule": schedule,
        }
    )


def planned_schedule(settings: TrainingSettings, model_dim: int) -> Schedule:
    """The learning rate of every update, through the first plan and the corrected one."""

    def planned(part: TrainingSettings) -> Schedule:
        return make_schedule(part.schedule, model_dim=model_dim, updates=part.updates)

    first, after = settings.first_plan, planned(settings)
    if first is None:
        return after
    before, until = planned(settings.at(0)), first.until
    return lambda step: before(step) if step <= until else after(step)
