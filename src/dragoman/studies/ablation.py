"""An ablation: the paper's table 3 for a recipe, with seeds and intervals.

Every row changes one thing of the recipe and is trained once for each seed, all with equal updates
over the same text; the table also gives the minutes of each row. A row is compared with the
unchanged recipe by the differences between runs of the same seed, which read the same examples in
the same order; if their 95 % interval contains 0, the difference may be due to the seeds.

The interval is Student's. It assumes that scores are normally distributed, with unknown mean and
variance; with two runs it is therefore wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated

from pydantic import Field

from dragoman.base.atomic import write_text
from dragoman.base.errors import RunError
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.studies.ablation_rows import BASE, AblationRow, choose_rows, rows_of
from dragoman.studies.records import (
    Record,
    StudyPlan,
    TrainingRecord,
    begin,
    open_study,
    ranking_score,
    record_has_learned,
    records_of,
    refuse_differing,
    require_validation,
)

PLAN = "ablation.json"


def scores_of(recipe: Recipe) -> list[str]:
    """The names of the compared scores besides the loss; the one that ranks training runs is
    first."""
    judged, measured = ranking_score(recipe), recipe.spec.metrics
    others = [name for name in measured if name not in COSTS and name != judged]
    return others if judged in COSTS else [judged, *others]


COSTS = ("loss", "perplexity")
"""Two forms of the same score: either form stands for both."""


class AblationPlan(StudyPlan):
    """The plan of an ablation (``ablation.json``)."""

    rows: list[str] = Field(min_length=2)
    """The names of the rows; the base is one of them."""
    seeds: list[Annotated[int, Field(ge=0, lt=2**63)]] = Field(min_length=1, max_length=1000)


@dataclass(frozen=True)
class RowResult:
    """The results of one row over the seeds that were trained."""

    row: AblationRow
    records: tuple[Record, ...]
    failed: int
    """The number of runs that could not be trained."""
    planned: int
    scores: dict[str, Estimate]
    """Mean and interval of each score by its name: perplexity, bleu."""
    differences: dict[str, Estimate]
    """Differences from the base between runs of the same seed; "loss" in nats."""


@dataclass(frozen=True)
class Ablation:
    """A folder with an ablation in it."""

    folder: Path
    plan: AblationPlan
    given: Recipe
    base: Recipe

    @classmethod
    def open(cls, folder: Path) -> Ablation:
        """Open the ablation in a folder. Errors: ``RunError`` if none is there, or a damaged
        one."""
        return cls(folder, *open_study(folder, PLAN, AblationPlan, "ablation"))

    @property
    def rows(self) -> list[AblationRow]:
        """The rows that are trained. Errors: ``RunError`` for a row unknown to this program."""
        known = {row.name: row for row in rows_of(self.given) if not row.cannot}
        for name in self.plan.rows:
            if name not in known:
                raise RunError(f"{self.folder / PLAN}: this recipe has no row {name!r}")
        return [row for name, row in known.items() if name in self.plan.rows]

    @property
    def impossible(self) -> list[AblationRow]:
        """The requested rows that the recipe cannot have: all of them if all possible rows are
        trained, else those of the groups of the trained rows."""
        rows = rows_of(self.given)
        if all(row.cannot or row.name in self.plan.rows for row in rows):
            return [row for row in rows if row.cannot]
        groups = {row.group for row in rows if row.name in self.plan.rows}
        return [row for row in rows if row.cannot and row.group in groups]

    @property
    def trainings(self) -> list[TrainingRecord]:
        """All training runs, seed by seed: stopped early, an ablation has results for every row."""
        return [_training(row, seed) for seed in self.plan.seeds for row in self.rows]

    @property
    def has_learned(self) -> bool:
        """True if any training scores better than guessing, or none has ended."""
        records = [record for row in self.results() for record in row.records]
        return not records or any(record_has_learned(record, self.base) for record in records)

    def results(self) -> list[RowResult]:
        """The results of every row so far."""
        named = {record.name: record for record in records_of(self.folder, self.trainings)}
        rows, seeds = self.rows, self.plan.seeds
        ended = [
            {seed: named[name] for seed in seeds if (name := _training(row, seed).name) in named}
            for row in rows
        ]
        return [self._row_result(row, own, ended[0]) for row, own in zip(rows, ended, strict=True)]

    def _row_result(
        self, row: AblationRow, ended: dict[int, Record], base: dict[int, Record]
    ) -> RowResult:
        """The result of a row, from its records and those of the base, by seed. Runs that could not
        be trained have no scores."""
        finished = {seed: record for seed, record in ended.items() if record.ended == "finished"}
        scores, differences = {}, {}
        names = scores_of(self.base)
        for name in (*COSTS, *names):
            values = [record.scores[name] for record in finished.values() if name in record.scores]
            if values:
                scores[name] = estimate(values)
        for name in ("loss", *names):
            pairs = [
                record.scores[name] - base[seed].scores[name]
                for seed, record in finished.items()
                if row.name != BASE and seed in base and base[seed].ended == "finished"
                if name in record.scores and name in base[seed].scores
            ]
            if pairs:
                differences[name] = estimate(pairs)
        records, failed = tuple(finished.values()), len(ended) - len(finished)
        return RowResult(row, records, failed, len(self.plan.seeds), scores, differences)


def begin_ablation(
    folder: Path,
    recipe: Recipe,
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    minutes: float | None,
    keep: bool,
    say: Say,
) -> Ablation:
    """Begin an ablation in ``folder``, or add rows and seeds to an existing ablation of the same
    recipe.

    ``names``: rows or groups of rows; all if empty. ``minutes``, for all training runs together, is
    converted into updates, which takes some seconds. Errors: ``DragomanError`` for unknown rows;
    ``RunError`` for a folder with another ablation in it.
    """
    require_validation(recipe, "an ablation")
    rows = [row.name for row in choose_rows(rows_of(recipe), names) if not row.cannot]
    plan = AblationPlan(rows=rows, seeds=list(seeds), minutes=minutes, keep=keep)
    if (folder / PLAN).is_file():
        return _join(Ablation.open(folder), plan, recipe)
    each = None if minutes is None else minutes / (len(rows) * len(seeds))
    begin(folder, PLAN, plan, recipe, each, say)
    return Ablation.open(folder)


def _join(ablation: Ablation, plan: AblationPlan, recipe: Recipe) -> Ablation:
    """The existing ablation with the rows and seeds of ``plan`` added. Errors: ``RunError`` if
    recipe or minutes differ."""
    minutes = ablation.plan.minutes if plan.minutes is None else plan.minutes
    settings = {
        "the recipe": (ablation.given, recipe),
        "--minutes": (ablation.plan.minutes, minutes),
    }
    refuse_differing(ablation.folder, "ablation", settings)
    update = {
        "rows": list(dict.fromkeys([*ablation.plan.rows, *plan.rows])),
        "seeds": list(dict.fromkeys([*ablation.plan.seeds, *plan.seeds])),
    }
    joined = ablation.plan.model_copy(update=update)
    if joined != ablation.plan:
        write_text(ablation.folder / PLAN, joined.model_dump_json(indent=2) + "\n")
    return Ablation.open(ablation.folder)


def _training(row: AblationRow, seed: int) -> TrainingRecord:
    return TrainingRecord(f"{row.name}-seed-{seed}", (*row.changes, f"seed={seed}"))


_WITHIN = 0.95
"""The probability that an interval contains the mean."""


@dataclass(frozen=True)
class Estimate:
    """The mean of some values, with its interval."""

    mean: float
    half: float | None
    """Half the width of its 95 % interval; None for a single value."""
    count: int

    @property
    def differs_from_zero(self) -> bool:
        """True if the interval excludes 0."""
        return self.half is not None and abs(self.mean) > self.half


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of at least one value, with Student's interval."""
    count = len(values)
    if count < 2:
        return Estimate(fmean(values), None, count)
    half = quantile(count - 1) * stdev(values) / math.sqrt(count)
    return Estimate(fmean(values), half, count)


@cache
def quantile(freedom: int) -> float:
    """t such that Student's distribution with ``freedom`` degrees has 95 % in [-t, t]."""
    low, high = 0.0, math.pi / 2  # bounds of the angle whose tangent is t / √ν
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _between(middle, freedom) < _WITHIN else (low, middle)
    return math.sqrt(freedom) * math.tan(middle)


def _between(angle: float, freedom: int) -> float:
    """The probability of the interval from -t to t = √ν tan θ, as a finite sum (Abramowitz and
    Stegun, 1964, 26.7.3 and 26.7.4): with ν odd

        (2 / π) (θ + sin θ (cos θ + 2/3 cos³ θ + … + 2·4…(ν-3) / (1·3…(ν-2)) cos^{ν-2} θ)),

    with ν even

        sin θ (1 + 1/2 cos² θ + … + 1·3…(ν-3) / (2·4…(ν-2)) cos^{ν-2} θ).
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    series = 0.0 if freedom == 1 else term
    for power in range(2 + odd, freedom - 1, 2):
        term *= (power - 1) / power * cosine**2
        series += term
    return 2 / math.pi * (angle + sine * series) if odd else sine * series
