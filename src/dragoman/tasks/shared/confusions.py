"""A confusion matrix as a picture: which label a run chooses for texts of each label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.metrics.classification import Confusion
from dragoman.pictures.records import Heatmap

MAX_DRAWN = 60
"""Labels of a picture."""


def drawn(title: str, labels: Sequence[str], confusion: Confusion) -> Heatmap | None:
    """The share of each label's texts that each label was chosen for; None where there are too many
    labels to be told apart in a picture."""
    if len(labels) > MAX_DRAWN:
        return None
    counts, support = confusion.counts, confusion.support
    rows = [f"{name} ({count:,})" for name, count in zip(labels, support, strict=True)]
    return Heatmap(rows, labels, counts / np.maximum(support, 1)[:, None], title)
