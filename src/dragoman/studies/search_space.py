"""The search space of a sweep: the settings that are searched, their values, and draws of trials.

``--search-space section.key=RANGE`` gives the values to draw from. Each draw depends only on the
seed, the number of the trial and the key (``data/hashing.py``): a trial does not change with the
number of trials, nor the values of a setting with the other settings that are searched.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.base.errors import DragomanError, RecipeError
from dragoman.data.hashing import key_of
from dragoman.runs.recipe.recipe import Recipe
from dragoman.studies.records import other_dev

_DRAWS = 0x5EA7C4
"""The key of these random draws; no other draws use it."""
_TRIES = 100
"""The most draws for one trial, until it differs from all earlier trials."""
_LENGTH = "the length of a training run"
_DATA = "the text that is learned and measured"
_MEASURE = "how trials are measured"
_TOKEN = "what a token is, by which the loss is measured"
_FIXED = {
    "training.updates": _LENGTH,
    "training.minutes": _LENGTH,
    "training.patience": _LENGTH,
    "training.first_plan": _LENGTH,
    "training.validate_every": "how often dev is looked at",
    "training.metric": "what trials are judged by",
    "plan.tokens_per_update": "the tokens of an update",
    "plan.max_source": "which of the dev examples are measured",
    "plan.max_target": "which of the dev examples are measured",
    "seed": "the random draws, and the luckiest seed would win (ablate and train --seeds show how "
    "much a seed matters)",
    "data": _DATA,
    "languages": _DATA,
    "trees": _DATA,
    "task": _MEASURE,
    "evaluation": _MEASURE,
    "masking": _MEASURE,
    "format": "the layout of a recipe",
    "name": "what a run is called",
}
"""Settings, and whole sections, that all trials share: otherwise trials would not be comparable, or
would not cost the same."""
_HOW = (
    "write --search-space training.schedule.peak=1e-4..3e-3:log for a range, "
    "--search-space model.dropout=0.1,0.2,0.3 for a choice"
)


@dataclass(frozen=True)
class Range:
    """A setting that is drawn between two limits."""

    key: str
    low: float
    high: float
    log: bool
    """True for a logarithmic scale: as many draws from 1e-4 to 1e-3 as from 1e-3 to 1e-2."""
    whole: bool
    """True for whole numbers; both limits are included."""

    def value(self, share: float) -> str:
        """Map a share, from 0 to below 1, to a value of the range, as TOML."""
        high = self.high + 1 if self.whole else self.high
        if self.log:
            drawn = self.low * (high / self.low) ** share
        else:
            drawn = self.low + (high - self.low) * share
        return str(math.floor(drawn)) if self.whole else f"{drawn:.3g}"

    def __str__(self) -> str:
        return f"{self.key}={self.low:g}..{self.high:g}{':log' if self.log else ''}"


@dataclass(frozen=True)
class Choices:
    """A list of values to choose from."""

    key: str
    values: tuple[str, ...]

    def value(self, share: float) -> str:
        """Map a share, from 0 to below 1, to one of the values."""
        return self.values[int(share * len(self.values))]

    def __str__(self) -> str:
        return f"{self.key}={','.join(self.values)}"


Over = Range | Choices
"""A setting that is searched and its values; ``str`` gives the form of the command line."""


def parse_over(text: str) -> Over:
    """Parse ``key=1e-4..3e-3:log`` or ``key=0.1,0.2``. Errors: ``DragomanError``."""
    key, equals, values = (part.strip() for part in text.partition("="))
    where = f"--search-space {text}"
    if not equals or not key or not values:
        raise DragomanError(f"{where} is not of the form section.key=VALUES: {_HOW}")
    if ".." not in values:
        choice = tuple(value.strip() for value in values.split(","))
        if len(choice) < 2 or not all(choice):
            raise DragomanError(f"{where} has only one value. {_HOW}")
        if len(set(choice)) < len(choice):
            raise DragomanError(f"{where} lists a value twice")
        return Choices(key, choice)
    ends, log = values.removesuffix(":log"), values.endswith(":log")
    low, _, high = (part.strip() for part in ends.partition(".."))
    try:
        first, last = float(low), float(high)
    except ValueError:
        raise DragomanError(f"{where}: {low!r} to {high!r} is not a range; {_HOW}") from None
    if not (math.isfinite(first) and math.isfinite(last) and first < last):
        raise DragomanError(f"{where} is an empty range. Write the smaller number first")
    if log and first <= 0:
        raise DragomanError(f"{where}. A logarithmic range must begin above 0")
    whole = all(re.fullmatch(r"[+-]?\d+", end) for end in (low, high))
    return Range(key, first, last, log, whole)


def usual(recipe: Recipe) -> list[Over]:
    """The default search: the learning rate, from a quarter of the recipe's to four times that, and
    the dropout values that are usual for the kind of model."""
    schedule = recipe.training.schedule
    name, rate = ("factor", schedule.factor) if schedule.kind == "noam" else ("peak", schedule.peak)
    low, high = (float(f"{rate * times:.3g}") for times in (0.25, 4))
    space: list[Over] = [Range(f"training.schedule.{name}", low, high, log=True, whole=False)]
    if "dropout" in type(recipe.model).model_fields:
        space.append(Choices("model.dropout", tuple(map(str, recipe.model.usual_dropout))))
    return space


def check_space(space: Sequence[Over], recipe: Recipe) -> None:
    """Errors: ``DragomanError`` for a setting that all trials share, that is named twice, or that
    does nothing in this recipe."""
    for over in space:
        if why := _why_fixed(over.key, recipe):
            instead = ""
            if why == _TOKEN and "bleu" in recipe.spec.metrics:
                instead = "; or judge them by BLEU: --set training.metric=bleu"
            raise DragomanError(
                f"--search-space {over}: {over.key} is {why}, which must be the same in all "
                f"trials{instead}"
            )
    keys = [over.key for over in space]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DragomanError(f"--search-space {twice} is given twice. Give each setting once")
    kind = recipe.training.schedule.kind
    dead = "training.schedule.peak" if kind == "noam" else "training.schedule.factor"
    if dead in keys:
        live = "factor" if kind == "noam" else "peak"
        raise DragomanError(
            f'--search-space {dead} has no effect with training.schedule.kind = "{kind}". Search '
            f"training.schedule.{live}"
        )


def _why_fixed(key: str, recipe: Recipe) -> str | None:
    """A description of a setting that all trials must share; None if it may be searched."""
    for fixed, why in _FIXED.items():
        if key == fixed or key.startswith(f"{fixed}."):
            return why
    task = recipe.spec
    if key == "plan.context" and "source" not in task.sides and not task.writes:
        return "which windows of dev are measured"
    if key == "plan.context" and task.counted == "words":
        return "how many words of each sentence of dev are measured"
    section, _, setting = key.partition(".")
    if section != "text" or setting == "sampling":  # used in training only
        return None
    if task.compared and setting in ("normalization", "lossless"):
        return "how the bytes of dev are counted"
    return _TOKEN if _is_by_token(recipe) else None


def _is_by_token(recipe: Recipe) -> bool:
    """Return whether the score that ranks the trials depends on the vocabulary's tokens."""
    task = recipe.spec
    if "target" not in task.texts or task.compared:
        return False
    return not task.writes or recipe.training.metric in ("loss", "perplexity")


def draw(space: Sequence[Over], recipe: Recipe, trials: int, seed: int) -> list[tuple[str, ...]]:
    """Draw the changes of each trial. The first trial has none: the recipe itself is the baseline.

    A larger number of trials does not change the earlier ones. Errors: ``RecipeError`` for a trial
    that is no valid recipe, ``DragomanError`` if there are too few different trials.
    """
    drawn: list[tuple[str, ...]] = [()]
    known = {recipe.model_dump_json()}
    for trial in range(1, trials):
        for attempt in range(_TRIES):
            changes = tuple(
                f"{over.key}={over.value(_share(seed, trial, attempt, over.key))}" for over in space
            )
            try:
                made = recipe.change(changes)
            except RecipeError as error:
                raise RecipeError(f"trial {trial + 1} ({', '.join(changes)}): {error}") from error
            if why := other_dev(made, recipe):
                raise DragomanError(f"trial {trial + 1} ({', '.join(changes)}) {why}")
            changed = made.model_dump_json()
            if changed not in known:
                break
        else:
            raise DragomanError(
                f"{' '.join(map(str, space))} has fewer than {trials} different trials. Set "
                f"--trials {trial}, or search a wider space"
            )
        known.add(changed)
        drawn.append(changes)
    return drawn


def _share(seed: int, trial: int, attempt: int, key: str) -> float:
    """A random number from 0 to below 1."""
    name = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
    return (key_of(_DRAWS, seed, trial, attempt, name) >> 11) / 2**53
