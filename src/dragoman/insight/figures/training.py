"""Figures of training (paper §5): the learning rate, label smoothing, the statistics of layers."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dragoman.insight.experiments import layer_statistics
from dragoman.insight.figures.captions import Parts
from dragoman.insight.panels import sublayer_words
from dragoman.insight.subject import Subject
from dragoman.nn.settings import Norm
from dragoman.pictures.figure import DataTable, Panel, Words
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import LinePanel, TextPanel
from dragoman.pictures.records import Series
from dragoman.training.schedule import Schedule, ScheduleSettings, make_schedule


def _name(width: int, warmup: int) -> str:
    return f"{width:,} / {warmup:,}"


def schedule_figure(*, dimension: int = 512, warmup: int = 4000) -> Parts:
    """Draw the learning rate of the paper (equation 3) for some widths and warm-ups, and that of
    schedules that are common today."""
    updates = 20_000
    steps = [1, *range(100, updates + 1, 100)]
    papers = [(dimension, warmup)]
    papers += [p for p in ((512, 4000), (1024, 4000), (512, 8000), (256, 2000)) if p not in papers]
    noam = {
        _name(width, steps_up): make_schedule(
            ScheduleSettings(kind="noam", warmup=steps_up), model_dim=width, updates=updates
        )
        for width, steps_up in papers[:4]
    }
    peak = noam[_name(dimension, warmup)](warmup)
    others = {
        kind: make_schedule(
            ScheduleSettings(kind=kind, warmup=warmup, peak=peak),
            model_dim=dimension,
            updates=updates,
        )
        for kind in ("inverse_square_root", "cosine", "constant")
    }

    def chart(title: str, rates: Mapping[str, Schedule]) -> Panel:
        series = [
            Series(name.replace("_", " "), steps, [rate(step) for step in steps])
            for name, rate in rates.items()
        ]
        return LinePanel(title, series, y_label="learning rate", from_zero=True, size=(520, 280))

    yield chart("The paper's schedule: d_model / warm-up", noam)
    yield chart("Used today, at the peak of the first", others)
    yield DataTable(
        ("update", *noam, *others),
        [(step, *(rate(step) for rate in (noam | others).values())) for step in steps],
    )


def smoothing_figure(*, epsilon: float = 0.1, vocabulary: int = 10) -> Parts:
    """Draw the smoothed target distribution, and the loss against the probability of the right
    token."""
    right = min(3, vocabulary - 1)
    hard = np.zeros(vocabulary)
    hard[right] = 1.0
    smooth = np.full(vocabulary, epsilon / vocabulary)
    smooth[right] += 1 - epsilon
    p = [i / 1000 for i in range(500, 1000)]

    def loss(q: float, epsilon: float) -> float:
        """Return the cross-entropy with label smoothing ``epsilon`` if the right token gets the
        probability ``q`` and all other tokens share the rest equally."""
        rest = (1 - q) / (vocabulary - 1)
        on_right = 1 - epsilon + epsilon / vocabulary
        wrong = (vocabulary - 1) * epsilon / vocabulary
        return -on_right * math.log(q) - wrong * math.log(rest)

    curves = {e: [loss(q, e) for q in p] for e in sorted({0.0, epsilon, 0.2})}
    best = p[int(np.argmin(curves[epsilon]))]
    tokens = [str(token) for token in range(1, vocabulary + 1)]
    least = f"{best:g}; 1 − ε + ε/V = {smooth[right]:g}"
    yield MatrixPicture(
        "Target distribution",
        np.stack([hard, smooth]),
        rows=["one-hot", f"ε = {epsilon:g}"],
        columns=tokens,
        across="token",
        cell=(min(42, 420 / vocabulary), 30),
        reach=1.0,
    )
    yield LinePanel(
        "Loss when the right token gets probability q",
        [Series(f"ε = {e:g}", p, curve) for e, curve in curves.items()],
        x_label="q",
        y_label="nats",
        marked_x=best,
        marked_as=f"least at {best:g}",
        size=(460, 260),
    )
    yield DataTable(
        ("token", "one-hot", "smoothed"),
        [(i + 1, float(hard[i]), float(smooth[i])) for i in range(vocabulary)],
    )
    yield DataTable(
        ("q", *(f"epsilon {e:g}" for e in curves)),
        [(q, *(curves[e][i] for e in curves)) for i, q in enumerate(p)],
        "loss",
    )
    yield Words(f"Least at q = {least}.", f"손실이 최소인 곳: q = {least}.")


_NORMS: dict[Norm, Words] = {
    "post": Words("post-norm", "사후 정규화"),
    "pre": Words("pre-norm", "사전 정규화"),
    "none": Words("without norms", "정규화가 없는"),
}


def layers_figure(subject: Subject) -> Parts:
    """Draw, for every sub-layer, the size of the residual stream before it, the size of what it
    adds, and the size of the stream after it."""
    measured = layer_statistics(
        subject.predictor, subject.pairs or [(subject.sentence, subject.output.text)]
    )
    header = ("sub-layer", "comes in", "added", "cosine", "sum", "goes on", "γ", "β")
    rows = [
        (
            sublayer_words(s.sublayer).english,
            *(s.stream, s.added, s.agreement, s.summed, s.after),
            *("" if value is None else value for value in (s.gain, s.bias)),
        )
        for s in measured
    ]
    places = list(range(1, len(measured) + 1))
    biggest = max(measured, key=lambda s: s.added / s.stream)
    norm = _NORMS[subject.transformer.settings.norm]
    most = biggest.added / biggest.stream
    yield LinePanel(
        "Size along the stream",
        [
            Series("comes in", places, [s.stream for s in measured]),
            Series("added", places, [s.added for s in measured]),
            Series("goes on", places, [s.after for s in measured]),
        ],
        x_label="sub-layer, numbered in the table",
        from_zero=True,
        size=(480, 280),
    )
    yield TextPanel(
        "Means over all tokens of some sentences",
        ("", *header),
        [
            (place, row[0], *(v if isinstance(v, str) else f"{v:.2f}" for v in row[1:]))
            for place, row in zip(places, rows, strict=True)
        ],
    )
    yield DataTable(
        ("number", *header, "module"),
        [
            (place, *row, s.sublayer.name)
            for place, row, s in zip(places, rows, measured, strict=True)
        ],
    )
    yield Words(
        f"This run is {norm.english}. Relative to what comes in, most is added by "
        f"{sublayer_words(biggest.sublayer).english}: {most:.2f} times as much.",
        f"이 모델은 {norm.korean} 방식입니다. 입력에 비해 가장 많이 더하는 곳: "
        f"{sublayer_words(biggest.sublayer).korean}, {most:.2f}배.",
    )
