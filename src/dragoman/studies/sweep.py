"""A random search of settings (Bergstra and Bengio, 2012): trials of equal cost, the best recipe.

Every trial has the same seed, text and number of updates, and is measured alike: language models by
bits per byte, since the loss of a token depends on the vocabulary. A given time is converted into
updates once, before the first trial. With equal minutes, a busy moment of the machine would affect
the result; with equal updates, trials are the same everywhere, and if only rates and dropout are
searched, they take equal minutes too.

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
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError, RecipeError
from dragoman.base.measure import Measure
from dragoman.base.wording import plural
from dragoman.data.hashing import keyed
from dragoman.pictures.figure import Cell, DataTable, Figure, Words, write_figure
from dragoman.pictures.labels import plain_table
from dragoman.pictures.panels import LinePanel, TextPanel
from dragoman.pictures.records import Chart, Series
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.studies.records import (
    Record,
    Stored,
    TrainingRecord,
    begin,
    judged_by,
    open_study,
    other_dev,
    record_has_learned,
    records_of,
    refuse_differing,
    require_validation,
)

PLAN, BEST = "sweep.json", "best.toml"


class SweepPlan(Stored):
    """The plan of a search (``sweep.json``)."""

    format: Literal[1] = 1
    over: list[str]
    """The settings that are searched, as on the command line."""
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    """The seed of the search; trainings use the seed of the recipe."""
    trials: Annotated[int, Field(ge=2, le=10_000)]
    minutes: Annotated[float, Field(gt=0)] | None = None
    """The time of all trials together, if one was given."""
    keep: bool = False
    """True to keep the runs of the trials."""


@dataclass(frozen=True)
class Sweep:
    """A folder with a search in it."""

    folder: Path
    plan: SweepPlan
    given: Recipe
    base: Recipe

    @classmethod
    def open(cls, folder: Path) -> Sweep:
        """Open the search in a folder. Errors: ``RunError`` if there is none, or it is damaged."""
        return cls(folder, *open_study(folder, PLAN, SweepPlan, "sweep"))

    @cached_property
    def space(self) -> list[Over]:
        """The settings that are searched, with their values."""
        return [parse_over(text) for text in self.plan.over]

    @cached_property
    def trainings(self) -> list[TrainingRecord]:
        """Return all trials in the order of their numbers."""
        drawn = draw(self.space, self.base, self.plan.trials, self.plan.seed)
        return [TrainingRecord(f"trial-{n}", changes) for n, changes in enumerate(drawn, 1)]

    @property
    def records(self) -> list[Record]:
        """The records of the trials that have ended."""
        return records_of(self.folder, self.trainings)

    @property
    def metric(self) -> str:
        """The name of the score that ranks the trials."""
        return judged_by(self.base)

    @property
    def ranked(self) -> list[Record]:
        """The records, best first; trials that failed come last."""
        metric = self.metric
        sign = 1 if self.measure(metric).better == "lower" else -1

        def rank(record: Record) -> tuple[bool, float]:
            score = record.scores.get(metric)
            return record.ended != "finished", math.inf if score is None else sign * score

        return sorted(self.records, key=rank)

    def measure(self, name: str) -> Measure:
        """The table entry of a score, which formats it."""
        return self.base.spec.measure(name)

    @property
    def best(self) -> Record | None:
        """The best trial; None until a trial scores better than guessing."""
        finished = (one for one in self.ranked if one.ended == "finished")
        return next((one for one in finished if record_has_learned(one, self.base)), None)

    def best_recipe(self) -> Recipe:
        """The given recipe, with its own number of updates and the changes of the best trial.

        Errors: ``DragomanError`` if no trial could be trained, or none has learned anything.
        """
        if self.best is None:
            raise DragomanError(self._none_is_best())
        return self.given.change(self.best.changes)

    def _none_is_best(self) -> str:
        """The message of ``best_recipe`` if there is no best trial."""
        finished = [record for record in self.ranked if record.ended == "finished"]
        if not finished:
            whys = {record.why for record in self.records}
            return f"no trial of {self.folder} could be trained: {'; '.join(sorted(whys))}"
        first, measure = finished[0], self.measure(self.metric)
        return (
            f"no trial of {self.folder} has learned anything yet: the first in the table has "
            f"{measure.called} {measure.written(first.scores[self.metric])} on dev, and guessing "
            f"has {measure.written(first.chance[self.metric])}, so none is the best. Search "
            f"again in another folder with longer trials, more than {self._length()} (--minutes, "
            "or --set training.updates)"
        )

    def _length(self) -> str:
        """The length of each trial, in words."""
        return plural(self.base.training.updates, "update")

    def rows(self) -> tuple[list[str], list[list[Cell]]]:
        """Header and rows of the table, the best trial first."""
        keys = [over.key for over in self.space]
        metrics = self._metrics()
        rows: list[list[Cell]] = []
        for record in self.ranked:
            values = _values(record, keys, self.base)
            scores = [
                self.measure(n).number(record.scores[n]) if n in record.scores else ""
                for n in metrics
            ]
            if record.ended == "untrainable":
                scores[0] = "failed"
            rows.append(
                [record.name, *values, *scores, f"{record.updates:,}", f"{record.minutes:.1f}"]
            )
        header = ["trial", *(key.rpartition(".")[2] for key in keys)]
        heads = [f"dev {self.measure(name).head}" for name in metrics]
        return [*header, *heads, "updates", "minutes"], rows

    def data(self) -> DataTable:
        """The table with unformatted numbers and the full names of the settings."""
        keys, metrics = [over.key for over in self.space], self._metrics()
        rows: list[list[Cell]] = []
        for record in self.ranked:
            scores: list[Cell] = [record.scores.get(name, "") for name in metrics]
            values = _values(record, keys, self.base)
            rows.append([
                record.name, record.ended, *values, *scores, record.updates, record.tokens,
                record.minutes,
            ])  # fmt: skip
        header = ["trial", "ended", *keys, *(f"dev {name}" for name in metrics)]
        counted = self.base.spec.counted
        return DataTable("", [*header, "updates", counted, "minutes"], rows)

    def table(self) -> str:
        """Return the table of all trials as plain text."""
        header, rows = self.rows()
        return plain_table(header, rows)

    def _metrics(self) -> list[str]:
        """The names of all scores on dev, beginning with the one that ranks the trials."""
        metric = self.metric
        measured = {metric, *(name for record in self.records for name in record.scores)}
        return sorted(measured, key=lambda name: (name != metric, name))

    def figure(self) -> Figure:
        """The score of every trial over each setting that was searched, and the table."""
        header, rows = self.rows()
        failed = sum(record.ended == "untrainable" for record in self.records)
        words = f"{plural(len(self.records), 'trial')} of {self._length()}"
        told = f"{words}, seed {self.plan.seed}" + (f"; {failed} failed" if failed else "")
        return Figure(
            name="sweep",
            title=Words(f"A random search: {self.given.name}", f"무작위 탐색: {self.given.name}"),
            caption=Words(
                told, f"시행 {len(self.records)}회, 각 {self.base.training.updates:,}회 업데이트"
            ),
            source=Words("Bergstra and Bengio, 2012", "Bergstra and Bengio, 2012"),
            panels=[*map(LinePanel, self.charts()), TextPanel(told, header, rows)],
            data=[self.data()],
        )

    def charts(self) -> list[Chart]:
        """The score of every trial over each setting whose values are numbers."""
        metric = self.metric
        return [chart for over in self.space if (chart := self._chart(over, metric)) is not None]

    def _chart(self, over: Over, metric: str) -> Chart | None:
        """The chart of a setting; None if its values are not numbers."""
        measure = self.measure(metric)
        points: list[tuple[float, float]] = []
        for record in self.ranked:
            (value,) = _values(record, [over.key], self.base)
            if record.ended == "untrainable":
                continue
            try:
                points.append((float(value), record.scores[metric] * measure.times))
            except ValueError:
                return None
        first = 0 if self.best is None else 1
        series = [
            Series(name, [x for x, _ in some], [y for _, y in some])
            for name, some in (("best", points[:first]), ("others", points[first:]))
            if some
        ]
        is_log = str(over).endswith(":log")
        return Chart(
            f"dev {measure.called} by {over.key.rpartition('.')[2]}", series, x_label=over.key,
            y_label=measure.unit.strip(),
            log_x=is_log, points=True,
        )  # fmt: skip

    def write(self) -> list[Path]:
        """Write the figure, its numbers and the best recipe, if there is one. Returns the files.

        Errors: ``FileError`` when the disk is full.
        """
        files = write_figure(self.folder, self.figure())
        if self.best is None:
            return files
        self.best_recipe().save(self.folder / BEST)
        return [*files, self.folder / BEST]


def begin_sweep(
    folder: Path,
    recipe: Recipe,
    over: Sequence[str],
    *,
    trials: int,
    seed: int,
    minutes: float | None,
    keep: bool,
    say: Say,
) -> Sweep:
    """Begin a search in ``folder``, or open the one that is there if it has the same settings.

    The number of ``trials`` of an existing search may be raised. ``minutes``, for all trials, is
    converted into updates, which takes some seconds. Errors: ``DragomanError`` and its subclasses
    for a search that is not possible; ``RunError`` for a folder with another search in it.
    """
    require_validation(recipe, "a sweep")
    space = [parse_over(text) for text in over] or usual(recipe)
    check_space(space, recipe)
    plan = SweepPlan(
        over=list(map(str, space)), seed=seed, trials=trials, minutes=minutes, keep=keep
    )
    if (folder / PLAN).is_file():
        return _same(Sweep.open(folder), plan, recipe)
    draw(space, recipe, trials, seed)  # refuses invalid recipes before anything is measured
    begin(folder, PLAN, plan, recipe, None if minutes is None else minutes / trials, say)
    return Sweep.open(folder)


def _same(found: Sweep, plan: SweepPlan, recipe: Recipe) -> Sweep:
    """The existing search, extended to ``plan.trials``. Errors: ``RunError`` if its settings differ
    from ``plan``."""
    pairs: dict[str, tuple[Any, Any]] = {
        "the recipe": (found.given, recipe),
        "--search-space": (found.plan.over, plan.over),
        "--seed": (found.plan.seed, plan.seed),
        "--minutes": (found.plan.minutes, plan.minutes),
    }
    differs = [name for name, (one, other) in pairs.items() if one != other]
    searches = f"; it searches {' '.join(found.plan.over)}"
    refuse_differing(found.folder, "sweep", differs, searches)
    if plan.trials <= found.plan.trials:
        return found
    draw(found.space, found.base, plan.trials, plan.seed)
    write_text(found.folder / PLAN, plan.model_dump_json(indent=2) + "\n")
    return Sweep.open(found.folder)


def _values(record: Record, keys: Sequence[str], base: Recipe) -> list[str]:
    """The value of each setting in a trial; an unchanged setting has the recipe's value."""
    changed = dict(change.split("=", 1) for change in record.changes)
    return [changed.get(key, _setting(base, key)) for key in keys]


def _setting(recipe: Recipe, key: str) -> str:
    """A setting of a recipe, roughly as TOML writes it."""
    value: Any = recipe.model_dump(mode="json")
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return str(value).lower() if isinstance(value, bool) else str(value)


_DRAWS = 0x5EA7C4
"""The key of these random draws; no other draws use it."""
_TRIES = 100
"""The most draws for one trial, until it differs from all earlier trials."""

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
    return (keyed(_DRAWS, seed, trial, attempt, name) >> 11) / 2**53
