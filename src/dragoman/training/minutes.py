"""The number of updates that fit into the minutes of a run, calculated before the run starts, and
once more after its first minute.

A measurement of a few seconds only shows the speed of these seconds, because other programs may
start or end later. So a run with a given time recalculates its number of updates after the first
minute, and never after that. The new number is written to the recipe before it applies, together
with the plan that was followed until then (``TrainingSettings.first_plan``), so a run that is
resumed, or repeated from its recipe, changes its plan after the same update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragoman.training.schedule import Schedule, make_schedule
from dragoman.training.settings import FirstPlan, TrainingSettings

VALIDATIONS = 20
"""The number of validations in a run. There are fewer if they would take more than ``SHARE`` of the
time."""
SHARE = 0.1
"""The largest share of the time of a run that validations may take."""

_FIRST_MINUTE = 60.0
_MIN_TIMED = 3
_NEAR = 0.05
"""If the recalculated number of updates differs from the planned number by less than this share,
the plan is kept."""


@dataclass
class Pace:
    """The time that updates and validations took, in seconds."""

    updates: int = 0
    update_seconds: float = 0.0
    validations: int = 0
    validation_seconds: float = 0.0

    def count_update(self, seconds: float) -> None:
        """Count one more update and its seconds. The first update, which warms up, is not timed."""
        self.updates += 1
        if self.updates > 1:
            self.update_seconds += seconds

    def count_validation(self, seconds: float) -> None:
        """Count one more validation and its seconds."""
        self.validations += 1
        self.validation_seconds += seconds

    @property
    def per_update(self) -> float:
        """The mean seconds of an update; at least two updates must have been counted."""
        return self.update_seconds / (self.updates - 1)

    @property
    def per_validation(self) -> float:
        """The mean seconds of a validation; at least one validation must have been counted."""
        return self.validation_seconds / self.validations


@dataclass(frozen=True)
class Correction:
    """The functions and numbers with which a trainer corrects its plan."""

    keep: Callable[[TrainingSettings], None]
    """A function that stores the corrected settings before they apply. It is called only in the
    first process."""
    model_dim: int
    """The width of the model, for the learning rate."""
    per_validation: float = 0.0
    """The seconds of a validation, as measured before the start; 0: unknown."""


def updates_in(seconds: float, per_update: float, per_validation: float) -> tuple[int, int]:
    """Return how many updates, at least 1, and how many validations fit into ``seconds``.

    There are at most ``VALIDATIONS`` validations, and there is always a validation at the end.
    """
    validations = VALIDATIONS
    if per_validation > 0:
        validations = max(1, int(min(VALIDATIONS, SHARE * seconds / per_validation)))
    return max(1, int((seconds - validations * per_validation) / per_update)), validations


def awaits_correction(settings: TrainingSettings, update: int) -> bool:
    """Return True if the plan of a run will still be corrected after ``update`` updates."""
    return settings.minutes > 0 and settings.first_plan is None and update < settings.updates


def seconds_to_fill(settings: TrainingSettings) -> float:
    """Return the total seconds that the run will take once its plan is corrected, or 0 if the plan
    will not be corrected."""
    seconds = 60 * settings.minutes
    return seconds if settings.first_plan is None and seconds > _FIRST_MINUTE else 0.0


def can_correct(elapsed: float, pace: Pace) -> bool:
    """Return True if the first minute is over and enough updates were timed in it."""
    return elapsed >= _FIRST_MINUTE and pace.updates > _MIN_TIMED


def correct(
    settings: TrainingSettings,
    update: int,
    elapsed: float,
    per_update: float,
    per_validation: float,
) -> TrainingSettings:
    """Return the settings for the rest of a run that has made ``update`` updates in ``elapsed``
    seconds.

    ``per_update``, ``per_validation``: the seconds of an update and of a validation. If
    ``per_validation`` is 0 (unknown), the validations are assumed to take ``SHARE`` of the
    remaining time, the largest share that they may take.
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
    """Return the learning rate of every update. If there is a first plan, its rates are used until
    it was corrected, and those of the corrected plan from then on."""

    def schedule_of(part: TrainingSettings) -> Schedule:
        return make_schedule(part.schedule, model_dim=model_dim, updates=part.updates)

    first, after = settings.first_plan, schedule_of(settings)
    if first is None:
        return after
    before, until = schedule_of(settings.at(0)), first.until
    return lambda step: before(step) if step <= until else after(step)
