"""What a run has learned from and is measured on, as baselines are given it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.runs.prepare import prepare
from dragoman.runs.run import Run
from dragoman.tasks.shared.evaluation import texts_of

Ids = npt.NDArray[np.integer[Any]]


def training_tokens(run: Run) -> list[Ids]:
    """The ids of each text, without end symbols."""
    store = prepare(run.recipe, run.folder, lambda _: None).train
    return [store.tokens("target", example) for example in range(len(store))]


def held_out_texts(run: Run) -> list[str]:
    """As ``dragoman evaluate`` reads them."""
    texts, _ = texts_of(run, ())
    return list(texts)
