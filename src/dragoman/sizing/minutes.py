"""The cost of a run, and its plan for some minutes: updates, validations, a warning if too few."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dragoman.base.task import Task
from dragoman.base.wording import plural
from dragoman.runs.recipe.recipe import Recipe
from dragoman.training.minutes import SHARE, VALIDATIONS, updates_in

if TYPE_CHECKING:
    from dragoman.training.fastest_way import Throughput

_LITTLE, _EPOCHS = 2_000, 12
"""Limits for a small text, which is learned sooner: tokens per unit of width, and epochs. Learning
begins after the larger of both."""
_SOONER_WITH_MUON = (4.35, 5.4)
"""Muon begins to learn this many times sooner than Adam, with short targets and with long ones
(measured on translators; docs/experiments.md)."""


def with_updates(
    recipe: Recipe, updates: int, *, validations: int = VALIDATIONS, minutes: float = 0.0
) -> Recipe:
    """The recipe for ``updates`` updates, with warm-up, validations and snapshots that fit in.

    ``minutes``: the time that the updates were computed from, if one was given.
    """
    training = recipe.training
    updates = max(1, updates)
    often = -(-updates // VALIDATIONS)
    every = 0
    if training.validate_every:
        every = -(-updates // validations)
    snapshots = training.snapshot_every
    if snapshots:  # the same number per validation, so that an average spans the same part
        before = training.validate_every * VALIDATIONS or training.updates
        snapshots = max(1, round(updates * snapshots / before))
    elif training.average_last and every > often:  # fewer validations, but as many snapshots
        snapshots = often
    schedule = training.schedule.model_copy(
        update={"warmup": min(training.schedule.warmup, max(1, updates // 4))}
    )
    planned = {
        "updates": updates,
        "minutes": minutes,
        "first_plan": None,
        "validate_every": every,
        "snapshot_every": snapshots,
        "schedule": schedule,
    }
    return recipe.updated(training=planned)


def for_minutes(
    recipe: Recipe, minutes: float, measured: Throughput, validation: float
) -> tuple[Recipe, float]:
    """The recipe for so many minutes, and the seconds of each validation.

    ``validation``: the seconds of a validation with the given recipe. If two validations would take
    more than their share of the time, each translates fewer sentences.
    """
    seconds = 60 * minutes
    if 2 * validation > SHARE * seconds:
        sentences = recipe.evaluation.dev_sentences
        part = max(SHARE * seconds / (2 * validation), 20 / max(1, sentences))
        if part < 1:
            validation *= part
            recipe = recipe.updated(evaluation={"dev_sentences": round(part * sentences)})
    if not recipe.training.validate_every:
        validation = 0.0
    updates, validations = updates_in(seconds, measured.seconds_per_update, validation)
    if recipe.training.average_last:  # the averaged weights are validated too
        validations = max(1, validations - 1)
    planned = with_updates(recipe, updates, validations=validations, minutes=minutes)
    return planned, validation


def cost_summary(recipe: Recipe, measured: Throughput, per_epoch: int) -> str:
    """The cost of a run as text, before it starts."""
    updates = recipe.training.updates
    # A run with a given time takes all of it; in other runs, validations take about a tenth.
    minutes = recipe.training.minutes or updates * measured.seconds_per_update / 0.9 / 60
    counted = recipe.spec.counted
    return (
        f"{plural(updates, 'update')}, {updates / max(1, per_epoch):.1f} epochs: about "
        f"{duration(minutes)} at {measured.tokens_per_second:,.0f} {counted}/s; "
        f"memory about {measured.peak_bytes / 2**30:.1f} GiB"
    )


def too_short(recipe: Recipe, measured: Throughput, per_epoch: int, length: float) -> str | None:
    """A warning if a run has too little time to learn anything. The verdict at its end uses the
    same estimate (``tasks/verdict.py``). ``length``: tokens of a target."""
    tokens_per_update = measured.tokens_per_second * measured.seconds_per_update
    needed = min_tokens(
        recipe.spec, recipe.model.model_dim, length, per_epoch * tokens_per_update,
        recipe.training.optimizer.kind,
    )  # fmt: skip
    wanted = math.ceil(needed / tokens_per_update)
    updates = recipe.training.updates
    if updates >= wanted:
        return None
    minutes = recipe.training.minutes * wanted / updates
    verb, counted = recipe.spec.verbs[0][0], recipe.spec.counted
    return (
        f"warning: {duration(recipe.training.minutes)} are too short to learn to {verb}. On "
        f"this machine, the model reads {updates * tokens_per_update:,.0f} {counted} in them, "
        f"{updates / max(1, per_epoch):.1f} epochs; such a model begins to {verb} after about "
        f"{wanted * tokens_per_update:,.0f}: --minutes {math.ceil(minutes)}, and more to learn "
        "it well"
    )


def min_tokens(
    task: Task,
    model_dim: int,
    length: float = 0.0,
    epoch: float = math.inf,
    optimizer: str = "adam",
) -> float:
    """The estimated amount that a model must see before it can do its task at all: more for a wide
    model and for long targets, less for a text that it sees many times (docs/experiments.md,
    "Minutes that do not teach"). It is in the task's unit, usually tokens.

    ``length``: tokens of a target; ``epoch``: tokens of all targets of the text; ``optimizer``: its
    name in a recipe.
    """
    a, b = task.begins
    if optimizer == "muon":
        a, b = a / _SOONER_WITH_MUON[0], b / _SOONER_WITH_MUON[1]
    much = model_dim * max(a, b * length)
    return min(much, max(_LITTLE * model_dim, _EPOCHS * epoch))


def duration(minutes: float) -> str:
    """The time in words, such as "12 minutes"."""
    if minutes < 2:
        return plural(max(1, round(60 * minutes)), "second")
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
