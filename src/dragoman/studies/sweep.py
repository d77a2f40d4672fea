"""A random search of settings (Bergstra and Bengio, 2012): trials of equal cost, the best recipe.

Every trial has the same seed, text and number of updates, and is measured alike: language models by
bits per byte, since the loss of a token depends on the vocabulary. A given time is converted into
updates once, before the first trial. With equal minutes, a busy moment of the machine would affect
the result; with equal updates, trials are the same everywhere, and if only rates and dropout are
searched, they take equal minutes too. ``search_space.py`` draws the settings of each trial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError
from dragoman.base.measure import Measure
from dragoman.base.wording import plural
from dragoman.pictures.figure import Cell, DataTable, Figure, Words, write_figure
from dragoman.pictures.labels import plain_table
from dragoman.pictures.panels import LinePanel, TextPanel
from dragoman.pictures.records import Series
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
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
from dragoman.studies.search_space import Over, check_space, draw, parse_over, usual

PLAN, BEST = "sweep.json", "best.toml"


class SweepPlan(StudyPlan):
    """The plan of a search (``sweep.json``)."""

    over: list[str]
    """The settings that are searched, as on the command line."""
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    """The seed of the search; training runs use the seed of the recipe."""
    trials: Annotated[int, Field(ge=2, le=10_000)]


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
        return ranking_score(self.base)

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
        finished = (trial for trial in self.ranked if trial.ended == "finished")
        return next((trial for trial in finished if record_has_learned(trial, self.base)), None)

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
            f"{measure.called} {measure.text(first.scores[self.metric])} on dev, and guessing "
            f"has {measure.text(first.chance[self.metric])}, so none is the best. Search "
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
        return DataTable([*header, "updates", counted, "minutes"], rows)

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
        note = f"{words}, seed {self.plan.seed}" + (f"; {failed} failed" if failed else "")
        return Figure(
            name="sweep",
            title=Words(f"A random search: {self.given.name}", f"무작위 탐색: {self.given.name}"),
            caption=Words(
                note, f"시행 {len(self.records)}회, 각 {self.base.training.updates:,}회 업데이트"
            ),
            source=Words("Bergstra and Bengio, 2012", "Bergstra and Bengio, 2012"),
            panels=[*self.charts(), TextPanel(note, header, rows)],
            data=[self.data()],
        )

    def charts(self) -> list[LinePanel]:
        """The score of every trial over each setting whose values are numbers."""
        metric = self.metric
        return [chart for over in self.space if (chart := self._chart(over, metric)) is not None]

    def _chart(self, over: Over, metric: str) -> LinePanel | None:
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
        return LinePanel(
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


def _same(sweep: Sweep, plan: SweepPlan, recipe: Recipe) -> Sweep:
    """The existing search, extended to ``plan.trials``. Errors: ``RunError`` if its settings differ
    from ``plan``."""
    settings = {
        "the recipe": (sweep.given, recipe),
        "--search-space": (sweep.plan.over, plan.over),
        "--seed": (sweep.plan.seed, plan.seed),
        "--minutes": (sweep.plan.minutes, plan.minutes),
    }
    searches = f"; it searches {' '.join(sweep.plan.over)}"
    refuse_differing(sweep.folder, "sweep", settings, searches)
    if plan.trials <= sweep.plan.trials:
        return sweep
    draw(sweep.space, sweep.base, plan.trials, plan.seed)
    write_text(sweep.folder / PLAN, plan.model_dump_json(indent=2) + "\n")
    return Sweep.open(sweep.folder)


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
