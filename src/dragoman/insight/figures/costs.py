"""Figures of cost: operations, sequential steps and paths of a layer (paper §4, table 1); and the
size and cost of a run compared with the first pre-trained language models.

Costs are given in days of a single device, and devices differ: a TPU of 2019 is many times as fast
as a GPU of 2018, and a CPU is many times slower. So only orders of magnitude are compared.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from dragoman.base.errors import DragomanError
from dragoman.insight.cost import (
    LAYERS,
    attention_cost,
    convolution_cost,
    durations,
    operations,
    recurrence_cost,
    restricted_attention_cost,
)
from dragoman.insight.figures.captions import Parts
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import DataTable, Words
from dragoman.pictures.panels import LinePanel, TextPanel
from dragoman.pictures.records import Series


def cost_figure() -> Parts:
    """Count the operations of each kind of layer at length 1000, width 1000 and kernel 3, with and
    without projections of the input, and time layers on this machine."""
    n = d = 1000
    every = [
        attention_cost(n, d), recurrence_cost(n, d), convolution_cost(n, d, 3),
        restricted_attention_cost(n, d, 100),
    ]  # fmt: skip
    small = 256
    measured = [
        (kind, operations(kind, small, small), seconds)
        for kind, seconds in durations(tuple(LAYERS), small, small).items()
        if seconds is not None
    ]
    left_out = ", ".join(kind for kind in LAYERS if kind not in {row[0] for row in measured})
    yield TextPanel(
        "n = 1,000, d = 1,000, k = 3",
        (
            "layer",
            "without projections, 10⁹",
            "with them, 10⁹",
            "sequential steps",
            "longest path",
        ),
        [(c.kind, c.core / 1e9, c.whole / 1e9, c.sequential, c.path) for c in every],
    )
    yield TextPanel(
        f"Timed on this machine, n = d = {small}",
        ("layer", "operations, 10⁶", "milliseconds", "10⁹ operations/s"),
        [
            (kind, count / 1e6, round(s * 1e3, 2), round(count / s / 1e9, 1))
            for kind, count, s in measured
        ],
    )
    yield DataTable(
        ("layer", "core", "whole", "sequential", "path"),
        [(c.kind, c.core, c.whole, c.sequential, c.path) for c in every],
    )
    yield DataTable(("layer", "operations", "seconds"), measured, "measured")
    if left_out:
        yield Words(
            f"Not shown: {left_out}. This machine was too busy: a part took longer than "
            "the whole, however often it was measured.",
            "이 컴퓨터가 너무 바빠서, 여러 번 재어도 핵심 연산(core)이 전체(whole)보다 오래 걸린 "
            f"층은 표시하지 않았습니다: {left_out}.",
        )


def length_figure() -> Parts:
    """Draw the operations and the time of each kind of layer against the length of the sequence,
    and list the lengths at which the lines cross."""
    d, k = 512, 3
    lengths = [round(2 ** (i / 4)) for i in range(12, 57)]
    lines = {
        "attention": [attention_cost(n, d).core for n in lengths],
        "with projections": [attention_cost(n, d).whole for n in lengths],
        "LSTM": [recurrence_cost(n, d).whole for n in lengths],
        "convolution": [convolution_cost(n, d, k).core for n in lengths],
    }
    width, tried = 128, (32, 64, 128, 256, 512, 1024)
    kinds = "self-attention core", "self-attention whole", "recurrence whole", "convolution"
    seconds: dict[str, dict[int, float]] = {kind: {} for kind in kinds}
    for n in tried:
        for kind, took in durations(kinds, n, width, repeats=2).items():
            if took is not None:
                seconds[kind][n] = took
    # 4n²d = 16nd², 4n²d + 8nd² = 16nd², 4n²d = 2knd², 4n²d = 8nd²
    crossings = [
        ("attention = LSTM, no projections in attention", "n = 4d", 4 * d),
        ("attention = LSTM, all counted", "n = 2d", 2 * d),
        ("attention = convolution, no projections", "n = kd/2", k * d // 2),
        ("n² part of attention = its projections", "n = 2d", 2 * d),
    ]
    logarithmic = partial(LinePanel, x_label="length n, logarithmic", log_x=True, log_y=True)
    yield logarithmic(
        "Operations of one layer, d = 512",
        [
            Series(name, lengths, [count / 1e9 for count in counts])
            for name, counts in lines.items()
        ],
        y_label="10⁹, logarithmic",
        marked_x=4 * d,
        marked_as="n = 4d",
        size=(520, 320),
    )
    yield logarithmic(
        f"Seconds on this machine, d = {width}",
        [
            Series(name, list(measured), list(measured.values()))
            for name, measured in zip(
                ("attention", "with proj.", "LSTM", "conv."), seconds.values(), strict=True
            )
        ],
        y_label="seconds, logarithmic",
        size=(520, 320),
    )
    yield TextPanel("Where lines cross", ("what", "where", "n at d = 512"), crossings)
    yield DataTable(
        ("length", *lines),
        [(n, *(counts[i] for counts in lines.values())) for i, n in enumerate(lengths)],
    )
    yield DataTable(
        ("length", *seconds),
        [(n, *(str(times.get(n, "")) for times in seconds.values())) for n in tried],
        "measured",
    )
    yield DataTable(("what", "where", "length"), crossings, "crossings")


class Milestone(NamedTuple):
    """A published model, with its date, size and training cost."""

    name: str
    month: str
    parameters: float | None
    """The parameters of the largest model, in millions; None if its paper gives no number."""
    days: float
    device: str
    basis: str
    """The sources of the numbers ``parameters`` and ``days``."""


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
        # The 32 TPU v3 with 8 cores each for 168 hours in nanochat's leaderboard would be 1,792.
        "GPT-2", "2019-02", 1542.0, 2048.0, "TPU v3 core",
        "size: Radford et al. 2019, table 2, which gives no cost; days: lectures, about",
    ),
)  # fmt: skip
_SECONDS_A_DAY = 86_400.0


def timeline_figure(subject: Subject) -> Parts:
    """Draw the days of training and the number of parameters of the published models, and of the
    run as the last one. Errors: ``DragomanError`` for a run whose training time is not recorded."""
    seconds = max((float(line.get("elapsed", 0.0)) for line in subject.run.metrics()), default=0.0)
    if not seconds:
        raise DragomanError(f"{subject.name} has no metrics.jsonl with its training time")
    own = Milestone(
        subject.name,
        "",
        sum(weights.numel() for weights in subject.predictor.plain.parameters()) / 1e6,
        seconds / _SECONDS_A_DAY,
        "its machine",
        "its metrics.jsonl",
    )
    every = (*PUBLISHED, own)
    least = min(PUBLISHED, key=lambda model: model.days)
    times = least.days / own.days
    yield LinePanel(
        "Days of one device",
        [
            Series("published", [1, 2, 3, 4], [model.days for model in PUBLISHED]),
            Series(own.name, [len(every)], [own.days]),
        ],
        x_label="in order of time, numbered in the table",
        log_y=True,
        points=True,
        size=(420, 280),
    )
    yield TextPanel(
        "Size and cost",
        ("", "model", "month", "parameters, 10⁶", "days", "of"),
        [
            (
                number,
                model.name,
                model.month,
                _short(model.parameters),
                _short(model.days),
                model.device,
            )
            for number, model in enumerate(every, 1)
        ],
    )
    yield DataTable(
        ("model", "month", "parameters", "days", "device", "source"),
        [
            (model.name, model.month, _number(model), model.days, model.device, model.basis)
            for model in every
        ],
    )
    yield Words(
        f"{own.name} trained for {seconds / 60:.1f} minutes: {least.name}, the cheapest of "
        f"the others, took {times:,.0f} times as long.",
        f"{own.name}의 학습 시간은 {seconds / 60:.1f}분입니다. 나머지 가운데 가장 짧은 "
        f"{least.name}의 학습 시간은 그 {times:,.0f}배입니다.",
    )


def _short(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _number(model: Milestone) -> float | str:
    return "" if model.parameters is None else model.parameters * 1e6
