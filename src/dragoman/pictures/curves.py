"""The curves of a training run, read from the records of its ``metrics.jsonl``.

A record is a mapping with ``kind`` ("update" or "validation") and ``update``; see
``training/records.py``. Records of other kinds, and numbers that are missing, are passed over, so
a run that was cut off anywhere still has its curves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dragoman.base.task import Task
from dragoman.pictures.records import Chart, Series

# Validation scores that are losses in nats, drawn with the training loss.
_LOSSES = ("nll", "loss")
# Said otherwise by the losses.
_LEFT_OUT = ("perplexity",)
_WEIGHTS = {"current": "", "ema": " (moving average)", "average": " (mean of the last)"}


def charts_of(records: Iterable[Mapping[str, object]], task: Task) -> tuple[Chart, ...]:
    """Loss, development scores, learning rate, gradient norm, speed; those that were recorded.

    ``task``: of the run, which says what its scores are called and on which scale they stand.
    """
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    best: float | None = None
    for record in records:
        update = _number(record.get("update"))
        if update is None:
            continue
        if record.get("kind") == "update":
            for key in ("nll", "learning_rate", "gradient_norm", "tokens_per_second"):
                _add(lines[key], update, record.get(key))
        elif record.get("kind") == "validation":
            scores = record.get("scores")
            weights = _WEIGHTS.get(str(record.get("weights")), "")
            if isinstance(scores, Mapping):
                for key, value in scores.items():
                    _add(lines[f"dev {key}{weights}"], update, value)
            if record.get("best") is True:
                best = update
    return _charts(lines, best, task)


def _add(points: list[tuple[float, float]], x: float, value: object) -> None:
    y = _number(value)
    if y is not None:
        points.append((x, y))


def _series(name: str, points: Sequence[tuple[float, float]], times: float = 1.0) -> Series:
    return Series(name, [x for x, _ in points], [times * y for _, y in points])


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _charts(
    lines: Mapping[str, list[tuple[float, float]]], best: float | None, task: Task
) -> tuple[Chart, ...]:
    drawn = {key: points for key, points in lines.items() if points}
    losses, scores = [], []
    if "nll" in drawn:
        losses.append(_series("training", drawn["nll"]))
    for key, points in drawn.items():
        if not key.startswith("dev "):
            continue
        score = key.removeprefix("dev ").split(" (")[0]
        if score in _LOSSES:
            # The unsmoothed loss is the comparable one; the smoothed one stands in for it.
            if score == "nll" or key.replace("loss", "nll", 1) not in drawn:
                name = "development" + key.removeprefix(f"dev {score}")
                losses.append(_series(name, points))
        elif score not in _LEFT_OUT:
            measure = task.measure(score)
            name = measure.head + key.removeprefix(f"dev {score}")
            scores.append(_series(name, points, measure.times))
    charts = []
    if losses:
        charts.append(
            Chart(
                "Loss", losses, y_label=f"{task.loss_unit} per {task.one_counted}",
                marked_x=best,
                marked_as="best",
            )
        )  # fmt: skip
    if scores:
        charts.append(Chart("Development scores", scores, marked_x=best, marked_as="best"))
    for key, title, label in (
        ("learning_rate", "Learning rate", ""),
        ("gradient_norm", "Gradient norm", "before clipping"),
        ("tokens_per_second", "Speed", f"{task.counted} per second"),
    ):
        if key in drawn:
            charts.append(Chart(title, [_series("", drawn[key])], y_label=label, from_zero=True))
    return tuple(charts)
