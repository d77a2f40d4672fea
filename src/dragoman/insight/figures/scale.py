"""Figure of the scale 1 / √d_k (paper §3.2.1): what happens to a softmax without it."""

from __future__ import annotations

import numpy as np
import torch

from dragoman.insight.figures.captions import Drawn
from dragoman.insight.head import softmax
from dragoman.pictures.figure import DataTable, Panel
from dragoman.pictures.panels import LinePanel
from dragoman.pictures.records import Chart, Series


def scale_figure() -> Drawn:
    """Variance of q · k against d_k, and what a softmax makes of it."""
    generator = torch.Generator().manual_seed(1)
    widths, pairs, keys = [2**i for i in range(1, 11)], 4000, 32
    rows = []
    for width in widths:
        q = torch.randn(pairs, width, generator=generator, dtype=torch.float64)
        k = torch.randn(pairs, width, generator=generator, dtype=torch.float64)
        variance = float((q * k).sum(-1).var())
        many = torch.randn(keys, width, generator=generator, dtype=torch.float64)
        scores = (q[:1000] @ many.T).numpy()
        row: list[float] = [width, variance]
        for scale in (1.0, width**-0.5):
            weights = softmax(scores * scale)
            entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(-1)
            slope = 1 - np.square(weights).sum(-1)
            row += [float(one.mean()) for one in (weights.max(-1), entropy, slope)]
        rows.append(row)
    table = np.array(rows)

    def line(name: str, column: int) -> Series:
        return Series(name, widths, table[:, column].tolist())

    def chart(title: str, *series: Series, log: bool = False, label: str = "") -> Panel:
        return LinePanel(
            Chart(title, series, x_label="d_k, logarithmic", log_x=True, log_y=log,
                  from_zero=not log, y_label=label or ("logarithmic" if log else "")),
            430,
        )  # fmt: skip

    header = (
        "d_k", "variance of q·k", "largest weight", "entropy", "1 - sum p^2",
        "largest weight, scaled", "entropy, scaled", "1 - sum p^2, scaled",
    )  # fmt: skip
    return Drawn(
        [
            chart(
                "Variance of q · k",
                line("measured", 1),
                Series("d_k", widths, [float(width) for width in widths]),
                log=True,
            ),
            chart("Largest of 32 weights, mean", line("as it is", 2), line("/ √d_k", 5)),
            chart("Entropy of the weights", line("as it is", 3), line("/ √d_k", 6), label="nats"),
            chart("What gradient is left, 1 − Σp²", line("as it is", 4), line("/ √d_k", 7)),
        ],
        [DataTable("", header, [(int(row[0]), *row[1:]) for row in rows])],
    )
