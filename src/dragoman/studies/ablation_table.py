"""The table and the figure of an ablation, with the paper's results."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import fmean

from dragoman.base.atomic import write_text
from dragoman.base.measure import Measure
from dragoman.base.wording import plural
from dragoman.pictures.figure import Cell, DataTable, Figure, Words, write_figure
from dragoman.pictures.labels import plain_table
from dragoman.pictures.panels import IntervalRow, Intervals, TextPanel
from dragoman.studies.ablation import COSTS, Ablation, Estimate, RowResult, scores_of
from dragoman.studies.ablation_rows import BASE, PAPER_BASE, AblationRow
from dragoman.studies.records import Record, ranking_score

_SHOWN = 1
"""The number of scores besides the loss in table and figure; ablation.csv has all of them."""

_MORE = (
    "more: the difference from the unchanged recipe, for runs with the same seed. *: its 95 % "
    "interval does not contain 0. Without *, the seed alone may explain the difference."
)
_PAPER = (
    "Paper: table 3, newstest2013, English to German, one run each. Its perplexity depends on "
    "its own vocabulary, so compare only the differences."
)


def table_rows(ablation: Ablation) -> tuple[list[str], list[list[Cell]]]:
    """Header and rows: our results and the paper's, then the rows that the recipe cannot have."""
    results, task = ablation.results(), ablation.base.spec
    cost = "perplexity" if "perplexity" in task.metrics else "loss"
    names = [name for name in scores_of(ablation.base) if any(name in m.scores for m in results)]
    names = names[:_SHOWN]
    loss, cost_measure, marked = task.measure("loss"), task.measure(cost), ablation.has_learned
    updates = sorted({record.updates for result in results for record in result.records})
    header = ["", "row", "what", "n", cost_measure.head, "more loss"]
    for name in names:
        header += [task.measure(name).head, f"more {task.measure(name).called}"]
    header += ["paper", "its perplexity", "its BLEU", "more", "parameters", "minutes"]
    header += ["updates"] * (len(updates) > 1)
    table: list[list[Cell]] = []
    for result in results:
        cells: list[Cell] = [
            result.row.part, result.row.name, result.row.what, _count(result),
            _cell(result.scores.get(cost), cost_measure),
            _difference(result.differences.get("loss"), loss, marked),
        ]  # fmt: skip
        for name in names:
            measure = task.measure(name)
            cells += [
                _cell(result.scores.get(name), measure),
                _difference(result.differences.get(name), measure, marked),
            ]
        cells += [*_of_paper(result.row), *_cost(result.records)]
        table.append([*cells, _updates(result.records)] if len(updates) > 1 else cells)
    width = len(header)
    for row in ablation.impossible:
        cannot: list[Cell] = [row.part, row.name, f"not possible: {row.cannot}"]
        table.append([*cannot, *([""] * (width - len(cannot)))])
    return header, table


def numbers(ablation: Ablation) -> DataTable:
    """The table with unformatted numbers: halves of 95 % intervals, means of updates over runs."""
    results = ablation.results()
    names = scores_of(ablation.base)
    costs = [name for name in COSTS if name in ablation.base.spec.metrics]
    header = ["row", "part", "what", "runs", "failed"]
    for name in (*costs, *names):
        header += [f"dev {name}", f"dev {name}, half"]
    for name in ("loss", *names):
        header += [f"more {name}", f"more {name}, half"]
    header += ["paper", "paper perplexity", "paper BLEU", "parameters", "updates", "minutes"]
    rows: list[list[Cell]] = []
    for result in results:
        cells: list[Cell] = [
            result.row.name, result.row.part, result.row.what, len(result.records), result.failed
        ]  # fmt: skip
        for name in (*costs, *names):
            cells += _bare(result.scores.get(name))
        for name in ("loss", *names):
            cells += _bare(result.differences.get(name))
        paper = result.row.paper
        cells += [paper.what, paper.perplexity, paper.bleu] if paper else ["", "", ""]
        parameters = result.records[0].parameters if result.records else ""
        updates = fmean(record.updates for record in result.records) if result.records else ""
        minutes = fmean(record.minutes for record in result.records) if result.records else ""
        rows.append([*cells, parameters, updates, minutes])
    return DataTable(header, rows)


def notes(ablation: Ablation) -> list[str]:
    """Notes on how to read the table."""
    records = [record for result in ablation.results() for record in result.records]
    counted = ablation.base.spec.counted
    tokens = {record.tokens for record in records}
    amount = f" ({_between(tokens)} {counted})" if tokens else ""
    updates = {record.updates for record in records}
    length = f"Every training has {plural(ablation.base.training.updates, 'update')}{amount}"
    if updates and updates != {ablation.base.training.updates}:
        length = (
            f"Training runs have {_between(updates)} updates{amount}: patience or minutes ended "
            "some earlier, so rows also differ in this"
        )
    what = (
        f"Scores on dev. {length}; "
        f"seeds {', '.join(map(str, ablation.plan.seeds))}. ±: half the 95 % interval of the mean "
        "(Student), n: runs."
    )
    warnings = [] if ablation.has_learned else [_learning_note(ablation, records)]
    return [*warnings, what, _MORE, _PAPER]


def _learning_note(ablation: Ablation, records: Sequence[Record]) -> str:
    """The note if no row has learned anything."""
    name, task = ranking_score(ablation.base), ablation.base.spec
    measure, best = task.measure(name), min if task.measure(name).better == "lower" else max
    return (
        "No row has learned anything yet: the best has "
        f"{measure.called} {measure.text(best(run.scores[name] for run in records))} on dev, "
        f"and guessing has {measure.text(best(run.chance[name] for run in records))}. The "
        "rows cannot be compared; train for longer (--minutes, or training.updates)."
    )


def _between(values: Collection[int]) -> str:
    """A number, or the lowest and the highest one."""
    least, most = min(values), max(values)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def table(ablation: Ablation) -> str:
    """The table and its notes as plain text."""
    header, rows = table_rows(ablation)
    return "\n".join([plain_table(header, rows), "", *notes(ablation)])


def figure(ablation: Ablation) -> Figure:
    """The differences with their intervals and the paper's, and the table."""
    results = [result for result in ablation.results() if result.row.name != BASE]
    task = ablation.base.spec
    names = [
        name
        for name in scores_of(ablation.base)
        if any(name in result.differences for result in results)
    ]
    panels = [
        Intervals(
            f"dev {task.measure(name).called}: difference from the unchanged recipe",
            task.measure(name).head,
            [_interval(result, name, task.measure(name)) for result in results],
        )
        for name in names[:_SHOWN]
    ]
    panels.append(
        Intervals(
            "dev loss: difference from the unchanged recipe", f"nats a {task.one_counted}",
            [_interval(result, "loss", task.measure("loss")) for result in results],
        )
    )  # fmt: skip
    header, rows = table_rows(ablation)
    name = ablation.given.name
    return Figure(
        name="ablation",
        title=Words(f"An ablation: {name}", f"절제 실험: {name}"),
        caption=Words(
            " ".join(notes(ablation)), f"시드 {len(ablation.plan.seeds)}개, 95 % 신뢰구간"
        ),
        source=Words("Table 3", "표 3"),
        panels=[*panels, TextPanel(f"An ablation: {name}", header, rows)],
        data=[numbers(ablation)],
    )


def write(ablation: Ablation) -> list[Path]:
    """Write the table, the figure and its numbers. Returns the files.

    Errors: ``FileError`` when the disk is full.
    """
    text = ablation.folder / "ablation.txt"
    write_text(text, f"{table(ablation)}\n")
    return [text, *write_figure(ablation.folder, figure(ablation))]


def _count(result: RowResult) -> str:
    failed = f", {result.failed} failed" if result.failed else ""
    missing = result.planned - len(result.records) - result.failed
    return f"{len(result.records)}{failed}" + (f" of {result.planned}" if missing else "")


def _bare(value: Estimate | None) -> list[Cell]:
    if value is None:
        return ["", ""]
    return [value.mean, "" if value.half is None else value.half]


def _cell(value: Estimate | None, measure: Measure) -> str:
    return "" if value is None else f"{measure.number(value.mean)}{_half(value, measure)}"


def _difference(value: Estimate | None, measure: Measure, marked: bool) -> str:
    if value is None:
        return ""
    star = "*" if marked and value.differs_from_zero else ""
    return f"{measure.difference(value.mean)}{_half(value, measure)}{star}"


def _half(value: Estimate, measure: Measure) -> str:
    return "" if value.half is None else f" ± {measure.number(value.half)}"


def _of_paper(row: AblationRow) -> list[Cell]:
    """The paper's setting, perplexity and BLEU, and the difference of BLEU from its base."""
    paper = row.paper
    if paper is None:
        return ["", "", "", ""]
    more = "" if row.name == BASE else f"{paper.bleu - PAPER_BASE.bleu:+.1f}"
    return [paper.what, f"{paper.perplexity:.2f}", f"{paper.bleu:.1f}", more]


def _cost(records: Sequence[Record]) -> list[Cell]:
    if not records:
        return ["", ""]
    minutes = fmean(record.minutes for record in records)
    return [f"{records[0].parameters:,}", f"{minutes:.1f}"]


def _updates(records: Sequence[Record]) -> str:
    return _between({record.updates for record in records}) if records else ""


def _interval(result: RowResult, name: str, measure: Measure) -> IntervalRow:
    value, paper = result.differences.get(name), result.row.paper
    published = None
    if paper is not None and name == "bleu":
        published = paper.bleu - PAPER_BASE.bleu
    elif paper is not None and name == "loss":
        published = math.log(paper.perplexity / PAPER_BASE.perplexity)
    label = f"{result.row.part} {result.row.what}".strip()
    if value is None:
        return IntervalRow(label, None, None, published)
    half = None if value.half is None else value.half * measure.times
    return IntervalRow(label, value.mean * measure.times, half, published)
