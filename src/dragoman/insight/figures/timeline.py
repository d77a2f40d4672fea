"""A run beside the language models that taught the field to pre-train: their size and their cost.

Days are of one device, and devices differ: a TPU of 2019 computes many times what a GPU of 2018
does, and a processor a fraction. So what is compared are orders of magnitude.
"""

from __future__ import annotations

from typing import NamedTuple

from dragoman.errors import DragomanError
from dragoman.insight.figures.captions import Drawn
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import DataTable, Words
from dragoman.pictures.panels import LinePanel, TextPanel
from dragoman.pictures.records import Chart, Series


class Milestone(NamedTuple):
    """A model as it was published."""

    name: str
    month: str
    parameters: float | None
    """In millions, of the largest; None where its paper gives no number."""
    days: float
    device: str
    basis: str
    """Where size and days are from."""


PUBLISHED = (
    Milestone(
        "ULMFiT", "2018-01", None, 1.0, "GPU",
        "Howard and Ruder 2018 (arXiv 1801.06146), which gives neither; day: lectures",
    ),
    Milestone(
        "GPT", "2018-06", 117.0, 240.0, "GPU",
        "8 GPUs for a month (OpenAI's announcement, June 2018); size: Radford et al. 2019, table 2",
    ),
    Milestone(
        "BERT", "2018-10", 340.0, 256.0, "TPU chip",
        "64 chips for 4 days (Devlin et al. 2019, appendix A.2); size: its section 3",
    ),
    Milestone(
        # 32 TPU v3 of 8 cores each for 168 hours, as nanochat's leaderboard has it, are 1,792.
        "GPT-2", "2019-02", 1542.0, 2048.0, "TPU v3 core",
        "size: Radford et al. 2019, table 2, which gives no cost; days: lectures, about",
    ),
)  # fmt: skip
_SECONDS_A_DAY = 86_400.0


def timeline_figure(subject: Subject) -> Drawn:
    """Device days and parameters, the run's own last. Errors: ``DragomanError`` for a run that does
    not say how long it trained."""
    seconds = max((float(line.get("elapsed", 0.0)) for line in subject.run.metrics()), default=0.0)
    if not seconds:
        raise DragomanError(
            f"{subject.name} does not say how long it trained: it has no metrics.jsonl"
        )
    own = Milestone(
        subject.name,
        "",
        sum(one.numel() for one in subject.predictor.plain.parameters()) / 1e6,
        seconds / _SECONDS_A_DAY,
        "its machine",
        "its metrics.jsonl",
    )
    every = (*PUBLISHED, own)
    least = min(PUBLISHED, key=lambda one: one.days)
    times = least.days / own.days
    days = Chart(
        "Days of one device",
        [
            Series("published", [1, 2, 3, 4], [one.days for one in PUBLISHED]),
            Series(own.name, [len(every)], [own.days]),
        ],
        x_label="in order of time, numbered in the table",
        log_y=True,
        points=True,
    )
    return Drawn(
        [
            LinePanel(days, 420, 280),
            TextPanel(
                "Size and cost",
                ("", "model", "month", "parameters, 10⁶", "days", "of"),
                [
                    (
                        number,
                        one.name,
                        one.month,
                        _short(one.parameters),
                        _short(one.days),
                        one.device,
                    )
                    for number, one in enumerate(every, 1)
                ],
            ),
        ],
        [
            DataTable(
                "",
                ("model", "month", "parameters", "days", "device", "source"),
                [
                    (one.name, one.month, _number(one), one.days, one.device, one.basis)
                    for one in every
                ],
            )
        ],
        run=subject.name,
        notes=[
            Words(
                f"{own.name} trained for {seconds / 60:.1f} minutes: {least.name}, the cheapest of "
                f"the others, took {times:,.0f} times as long.",
                f"{own.name}의 학습 시간은 {seconds / 60:.1f}분입니다. 나머지 가운데 가장 짧은 "
                f"{least.name}의 학습 시간은 그 {times:,.0f}배입니다.",
            )
        ],
    )


def _short(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _number(one: Milestone) -> float | str:
    return "" if one.parameters is None else one.parameters * 1e6
