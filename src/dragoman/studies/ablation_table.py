"""The table and the picture of an ablation, the paper's figures beside ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from dragoman.atomic import write_text
from dragoman.metrics.interval import Estimate
from dragoman.pictures.figure import Cell, DataTable, Figure, Words
from dragoman.pictures.intervals import IntervalRow, Intervals
from dragoman.pictures.panels import Text
from dragoman.pictures.plain_table import plain_table
from dragoman.plural import plural
from dragoman.studies.ablation import SCORES, Ablation, Measured
from dragoman.studies.ablation_rows import BASE, PAPER_BASE, Row
from dragoman.studies.several import Record, write_figure

_MORE = (
    "more: the difference from the recipe as it is, of runs of the same seed; * its interval "
    "leaves out 0. Without it, seeds alone may make such a difference."
)
_PAPER = (
    "Paper: table 3, newstest2013, English to German, one run each; perplexity by its own "
    "vocabulary, so that only the differences compare."
)


def table_rows(ablation: Ablation) -> tuple[list[str], list[list[Cell]]]:
    """Header and rows: ours, the paper's, then what the recipe cannot have."""
    measured = ablation.measured()
    names = [name for name in SCORES if any(name in one.scores for one in measured)]
    header = ["", "row", "what", "n", "perplexity", "more loss"]
    for name in names:
        header += [SCORES[name], f"more {SCORES[name]}"]
    header += ["paper", "its perplexity", "its BLEU", "more", "parameters", "minutes"]
    table: list[list[Cell]] = []
    for one in measured:
        cells: list[Cell] = [
            one.row.part, one.row.name, one.row.what, _count(one),
            _told(one.scores.get("perplexity")), _difference(one.differences.get("loss"), 3),
        ]  # fmt: skip
        for name in names:
            cells += [_told(one.scores.get(name)), _difference(one.differences.get(name), 2)]
        cells += [*_of_paper(one.row), *_cost(one.records)]
        table.append(cells)
    width = len(header)
    for row in ablation.impossible:
        cannot: list[Cell] = [row.part, row.name, f"not possible: {row.cannot}"]
        table.append([*cannot, *([""] * (width - len(cannot)))])
    return header, table


def numbers(ablation: Ablation) -> DataTable:
    """The same as bare numbers; halves are those of 95 % intervals."""
    header = ["row", "part", "what", "runs", "failed"]
    for name in ("perplexity", *SCORES):
        header += [f"dev {name}", f"dev {name}, half"]
    for name in ("loss", *SCORES):
        header += [f"more {name}", f"more {name}, half"]
    header += ["paper", "paper perplexity", "paper BLEU", "parameters", "updates", "minutes"]
    rows: list[list[Cell]] = []
    for one in ablation.measured():
        cells: list[Cell] = [
            one.row.name, one.row.part, one.row.what, len(one.records), one.failed
        ]  # fmt: skip
        for name in ("perplexity", *SCORES):
            cells += _bare(one.scores.get(name))
        for name in ("loss", *SCORES):
            cells += _bare(one.differences.get(name))
        paper = one.row.paper
        cells += [paper.what, paper.perplexity, paper.bleu] if paper else ["", "", ""]
        parameters = one.records[0].parameters if one.records else ""
        minutes = fmean(record.minutes for record in one.records) if one.records else ""
        rows.append([*cells, parameters, ablation.base.training.updates, minutes])
    return DataTable("", header, rows)


def notes(ablation: Ablation) -> list[str]:
    """How to read the table."""
    tokens = {record.tokens for one in ablation.measured() for record in one.records}
    seen = f" ({min(tokens):,} target tokens)" if tokens else ""
    if len(tokens) > 1:
        seen = f" ({min(tokens):,} to {max(tokens):,} target tokens)"
    what = (
        "Scores on dev. Every training has "
        f"{plural(ablation.base.training.updates, 'update')}{seen}; "
        f"seeds {', '.join(map(str, ablation.plan.seeds))}. ±: half the 95 % interval of the mean "
        "(Student), n: runs."
    )
    return [what, _MORE, _PAPER]


def table(ablation: Ablation) -> str:
    """Plain text."""
    header, rows = table_rows(ablation)
    return "\n".join([plain_table(header, rows), "", *notes(ablation)])


def figure(ablation: Ablation) -> Figure:
    """Differences with their intervals, the paper's beside, and the table."""
    measured = [one for one in ablation.measured() if one.row.name != BASE]
    panels = [
        Intervals(
            f"dev {SCORES[name]}: how much more than the recipe as it is",
            SCORES[name],
            [_interval(one, name) for one in measured],
        )
        for name in SCORES
        if any(name in one.differences for one in measured)
    ]
    panels.append(
        Intervals(
            "dev loss: how much more than the recipe as it is", "nats a token",
            [_interval(one, "loss") for one in measured],
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
        panels=[*panels, Text(f"An ablation: {name}", header, rows)],
        data=[numbers(ablation)],
    )


def write(ablation: Ablation) -> list[Path]:
    """The picture, its numbers and the table -> the files.

    Errors: ``FileError`` when the disk is full.
    """
    text = ablation.folder / "ablation.txt"
    write_text(text, f"{table(ablation)}\n")
    return [text, *write_figure(ablation.folder, figure(ablation))]


def _count(one: Measured) -> str:
    failed = f", {one.failed} failed" if one.failed else ""
    missing = one.planned - len(one.records) - one.failed
    return f"{len(one.records)}{failed}" + (f" of {one.planned}" if missing else "")


def _bare(value: Estimate | None) -> list[Cell]:
    if value is None:
        return ["", ""]
    return [value.mean, "" if value.half is None else value.half]


def _told(value: Estimate | None) -> str:
    return "" if value is None else str(value)


def _difference(value: Estimate | None, digits: int) -> str:
    if value is None:
        return ""
    half = "" if value.half is None else f" ± {value.half:.{digits}f}"
    return f"{value.mean:+.{digits}f}{half}{'*' if value.differs_from_zero else ''}"


def _of_paper(row: Row) -> list[Cell]:
    """Its setting, perplexity and BLEU, and how much more BLEU that is than its base has."""
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


def _interval(one: Measured, name: str) -> IntervalRow:
    value, paper = one.differences.get(name), one.row.paper
    published = None
    if paper is not None and name == "bleu":
        published = paper.bleu - PAPER_BASE.bleu
    elif paper is not None and name == "loss":
        published = math.log(paper.perplexity / PAPER_BASE.perplexity)
    label = f"{one.row.part} {one.row.what}".strip()
    if value is None:
        return IntervalRow(label, None, None, published)
    return IntervalRow(label, value.mean, value.half, published)
