"""What a random search draws from: ``--search-space section.key=RANGE``.

Each draw is owned by the seed, the number of the trial and the key (``data/hashing.py``), so a
trial is the same however many there are, and what is drawn for one setting does not depend on which
others are searched.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.base.errors import DragomanError, RecipeError
from dragoman.data.hashing import keyed
from dragoman.recipe.recipe import Recipe
from dragoman.studies.records import other_dev

_DRAWS = 0x5EA7C4
"""What these draws are for: no other has this key."""
_TRIES = 100
"""Draws for one trial until one differs from all before it."""

_LENGTH = "the length of a training"
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
"""What all trials share, settings or whole sections of them: they would not be comparable, or not
cost the same."""

_HOW = (
    "write --search-space training.schedule.peak=1e-4..3e-3:log for a range, "
    "--search-space model.dropout=0.1,0.2,0.3 for a choice"
)


@dataclass(frozen=True)
class Range:
    """Any number between two."""

    key: str
    low: float
    high: float
    log: bool
    """Evenly by the logarithm: as often between 1e-4 and 1e-3 as between 1e-3 and 1e-2."""
    whole: bool
    """Whole numbers, both ends included."""

    def value(self, share: float) -> str:
        """The value at a share, from 0 to below 1, of all there are, as TOML."""
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
    """One of some values."""

    key: str
    values: tuple[str, ...]

    def value(self, share: float) -> str:
        """The same of these."""
        return self.values[int(share * len(self.values))]

    def __str__(self) -> str:
        return f"{self.key}={','.join(self.values)}"


Over = Range | Choices
"""The values of one setting that are searched; as text, what the command line takes."""


def parse_over(text: str) -> Over:
    """``key=1e-4..3e-3:log`` or ``key=0.1,0.2``. Errors: ``DragomanError``."""
    key, equals, values = (part.strip() for part in text.partition("="))
    where = f"--search-space {text}"
    if not equals or not key or not values:
        raise DragomanError(f"{where} is not of the form section.key=VALUES: {_HOW}")
    if ".." not in values:
        choice = tuple(value.strip() for value in values.split(","))
        if len(choice) < 2 or not all(choice):
            raise DragomanError(f"{where} leaves nothing to choose: {_HOW}")
        if len(set(choice)) < len(choice):
            raise DragomanError(f"{where}: a value stands there twice")
        return Choices(key, choice)
    ends, log = values.removesuffix(":log"), values.endswith(":log")
    low, _, high = (part.strip() for part in ends.partition(".."))
    try:
        first, last = float(low), float(high)
    except ValueError:
        raise DragomanError(
            f"{where}: {low!r} to {high!r} is no range of numbers; {_HOW}"
        ) from None
    if not (math.isfinite(first) and math.isfinite(last) and first < last):
        raise DragomanError(f"{where} is an empty range: the first number is the smaller one")
    if log and first <= 0:
        raise DragomanError(f"{where}: a range by logarithms begins above 0")
    whole = all(re.fullmatch(r"[+-]?\d+", end) for end in (low, high))
    return Range(key, first, last, log, whole)


def usual(recipe: Recipe) -> list[Over]:
    """The learning rate, from a quarter of the recipe's to four times that, and the dropout that is
    usual for the kind of model."""
    schedule = recipe.training.schedule
    name, rate = ("factor", schedule.factor) if schedule.kind == "noam" else ("peak", schedule.peak)
    low, high = (float(f"{rate * times:.3g}") for times in (0.25, 4))
    found: list[Over] = [Range(f"training.schedule.{name}", low, high, log=True, whole=False)]
    if "dropout" in type(recipe.model).model_fields:
        found.append(Choices("model.dropout", tuple(map(str, recipe.model.usual_dropout))))
    return found


def check_space(space: Sequence[Over], recipe: Recipe) -> None:
    """Errors: ``DragomanError`` for a setting that all trials share, that is named twice, or that
    does nothing in this recipe."""
    for over in space:
        if why := _why_fixed(over.key, recipe):
            instead = ""
            if why == _TOKEN and "bleu" in recipe.spec.metrics:
                instead = "; or judge them by BLEU: --set training.metric=bleu"
            raise DragomanError(
                f"--search-space {over}: {over.key} is {why}, which all trials share{instead}"
            )
    keys = [over.key for over in space]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DragomanError(f"--search-space {twice} is given twice: name each setting once")
    kind = recipe.training.schedule.kind
    dead = "training.schedule.peak" if kind == "noam" else "training.schedule.factor"
    if dead in keys:
        live = "factor" if kind == "noam" else "peak"
        raise DragomanError(
            f'--search-space {dead} does nothing with training.schedule.kind = "{kind}": search '
            f"training.schedule.{live}"
        )


def _why_fixed(key: str, recipe: Recipe) -> str | None:
    """What a setting is that trials may not differ by."""
    for fixed, why in _FIXED.items():
        if key == fixed or key.startswith(f"{fixed}."):
            return why
    task = recipe.spec
    if key == "plan.context" and "source" not in task.sides and not task.writes:
        return "which windows of dev are measured"
    if key == "plan.context" and task.counted == "words":
        return "how many words of each sentence of dev are measured"
    section, _, setting = key.partition(".")
    if section != "text" or setting == "sampling":  # which is of training alone
        return None
    if task.compared and setting in ("normalization", "lossless"):
        return "how the bytes of dev are counted"
    return _TOKEN if _is_by_token(recipe) else None


def _is_by_token(recipe: Recipe) -> bool:
    """Whether the score that trials are judged by is one of tokens of the vocabulary."""
    task = recipe.spec
    if "target" not in task.texts or task.compared:
        return False
    return not task.writes or recipe.training.metric in ("loss", "perplexity")


def draw(space: Sequence[Over], recipe: Recipe, trials: int, seed: int) -> list[tuple[str, ...]]:
    """The changes of each trial. The first has none: the recipe as it is is what others must beat.

    Further trials leave those before them as they are.
    Errors: ``RecipeError`` for one that is no recipe, ``DragomanError`` if there are not so many
    that differ.
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
                f"{' '.join(map(str, space))} does not hold {trials} trials that differ: ask for "
                f"{trial} (--trials), or search a wider space"
            )
        known.add(changed)
        drawn.append(changes)
    return drawn


def _share(seed: int, trial: int, attempt: int, key: str) -> float:
    """From 0 to below 1."""
    name = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
    return (keyed(_DRAWS, seed, trial, attempt, name) >> 11) / 2**53
