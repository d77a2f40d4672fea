"""What the records of a run say of its training, for the verdict at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.data.store import Tokens, TokenStore
from dragoman.measure import LOSS, Measure
from dragoman.runs.run import Run

_OF_GUESSING = 0.9
"""A loss above so much of what guessing by frequency costs is hardly learned."""
_COUNTED = 2_000_000
"""Tokens that frequencies are counted over."""

TEXT = "text"
"""Among the notes of a run: what ``text_notes`` finds."""


@dataclass(frozen=True)
class TrainingSummary:
    """What the records of a run say of its training."""

    tokens: int
    seconds: float
    nll: float
    """The loss of the last updates, in nats."""
    scores: dict[str, float]
    """The best of each score on dev; of a loss the lowest."""
    samples: Sequence[dict[str, str]]
    """Of the last validation."""
    updates: int
    """0 where no training is recorded."""

    @classmethod
    def of(cls, run: Run) -> TrainingSummary:
        tokens, updates, seconds, nlls = 0, 0, 0.0, list[float]()
        scores: dict[str, float] = {}
        samples: Sequence[dict[str, str]] = ()
        for record in run.metrics():
            if record["kind"] == "update":
                tokens += record["tokens"]
                updates = record["update"]
                seconds = record["elapsed"]
                nlls += [] if record["nll"] is None else [record["nll"]]
                continue
            samples = record.get("samples", ())
            for name, value in record["scores"].items():
                measure = run.task.metrics.get(name)
                if value is None or measure is None:
                    continue
                if name not in scores or measure.is_better(value, scores[name]):
                    scores[name] = value
        last = nlls[-max(1, len(nlls) // 20) :]
        return cls(tokens, seconds, sum(last) / max(1, len(last)), scores, samples, updates)


def below(
    measure: Measure, least: float, on_dev: float | None, on_test: float | None
) -> str | None:
    """Why a run has hardly learned, by its score on dev or, where there is none, on the test set;
    None if it has."""
    value, where = (on_test, "the test set") if on_dev is None else (on_dev, "dev")
    if value is None or value >= least:
        return None
    return (
        f"{measure.called} {measure.written(value)} on {where}, below the "
        f"{measure.written(least)} of a model that has begun to learn"
    )


def by_frequency(run: Run, training: TrainingSummary) -> str | None:
    """The same of a run that predicts tokens of a text, by what their frequencies alone tell."""
    guess, loss = run.notes().get(TEXT, {}).get("by_frequency"), training.scores.get("loss")
    if not guess or loss is None or loss < _OF_GUESSING * guess:
        return None
    return (
        f"its loss on dev is {LOSS.written(loss)} nats a token, and token frequencies alone give "
        f"{LOSS.written(guess)}"
    )


def on_test(run: Run, name: str) -> float | None:
    """A score of the last evaluation, if there was one."""
    found = run.scores().get("scores", {}).get(name)
    return None if found is None else float(found["value"])


def text_notes(store: TokenStore, side: str, vocabulary: int | None, dev: Sequence[Tokens]) -> Any:
    """What a run notes of the text that it learns to write: ``tokens`` of an epoch and the mean
    ``length`` of an example, end symbols counted; with a ``vocabulary``, what it costs
    ``by_frequency`` to guess the tokens of ``dev``, in nats each."""
    tokens = store.total(side) + len(store)
    notes: dict[str, float] = {"tokens": tokens, "length": round(tokens / len(store), 2)}
    if vocabulary is not None and any(map(len, dev)):
        counts, seen = np.ones(vocabulary), 0
        for example in range(len(store)):
            some = store.tokens(side, example)
            counts += np.bincount(some, minlength=vocabulary)
            seen += len(some)
            if seen >= _COUNTED:
                break
        cost = -np.log(counts / counts.sum())
        asked = np.concatenate(dev)
        notes["by_frequency"] = round(float(cost[asked].mean()), 4)
    return notes
