"""Validation during training, and the choice of the weights in RUN/model.safetensors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dragoman.base.errors import TrainingError
from dragoman.native.allocator import returning_memory
from dragoman.nn.linear import refresh
from dragoman.training.checkpoint import TrainingState
from dragoman.training.interrupt import StopRequest
from dragoman.training.records import Evaluation, ValidationRecord, Weights
from dragoman.training.update import Updater
from dragoman.training.weights import save_weights, swap

ERROR_RATES = frozenset({"wer", "cer", "ter"})
"""The names of metrics that are errors in percent of the reference, as in recipes."""
Evaluate = Callable[[int], Evaluation]
"""A function from the number of updates done to the evaluation of the model. When it is called, the
model is in evaluation mode, and gradients are off."""


@dataclass(eq=False)
class Validator:
    """Evaluates the model, and saves its weights if they are the best so far. ``state`` stores the
    best result."""

    updater: Updater
    lower_is_better: bool
    """True if lower values of the metric are better."""
    state: TrainingState
    stop: StopRequest
    evaluate: Evaluate | None
    path: Path
    """The path of the weights, RUN/model.safetensors."""

    def validate(self, weights: Weights, values: Tensor | None = None) -> ValidationRecord:
        """Evaluate the model, and record the result in ``state``. If ``values`` (E,) are given,
        they are used instead of the current weights.

        If the weights are better than all earlier ones, they are written to ``path``. Raises
        Interrupted if a request to stop arrives during the evaluation; then nothing has changed.
        """
        with self._in_place(values):
            began = time.perf_counter()
            evaluation = self._evaluate()
            value = self._value(evaluation)
            loss = evaluation.scores.get("loss", math.inf)
            best = self._is_best(value, loss)
            if best:
                self.keep(weights if weights == "average" else "best", value)
                self.state.best_value, self.state.best_update = value, self.state.update
                self.state.best_loss = loss if math.isfinite(loss) else None
            seconds = time.perf_counter() - began
        self.state.elapsed += seconds
        if weights != "average":
            self.state.validated = self.state.update
            self.state.validations_without_gain += 1
            if best:
                self.state.validations_without_gain = 0
        return ValidationRecord(
            update=self.state.update,
            weights=weights,
            scores=evaluation.scores,
            samples=tuple(sample.shorten() for sample in evaluation.samples),
            best=best,
            seconds=seconds,
            elapsed=self.state.elapsed,
        )

    def keep(self, which: str, value: float | None = None, values: Tensor | None = None) -> None:
        """Write ``values`` (E,), or the current weights if None, to ``path``. The metadata of the
        file hold the name of this set of weights (``which``) and its score (``value``)."""
        metadata = {"weights": which, "update": str(self.state.update)}
        if value is not None:
            metadata |= {"metric": self.updater.settings.metric, "value": repr(value)}
        views = self.updater.flat.views(self.updater.flat.values if values is None else values)
        save_weights(self.path, views, metadata)

    def _evaluate(self) -> Evaluation:
        assert self.evaluate is not None, "validation is due only where there is an evaluation"
        self.updater.model.eval()
        try:
            with torch.no_grad(), self.stop.interruptible(), returning_memory():
                return self.evaluate(self.state.update)
        finally:
            self.updater.model.train()

    def _value(self, evaluation: Evaluation) -> float:
        metric = self.updater.settings.metric
        if metric not in evaluation.scores:
            raise TrainingError(
                f"training.metric is {metric!r}, but validation gives "
                f"{', '.join(sorted(evaluation.scores)) or 'no scores'}."
            )
        return evaluation.scores[metric]

    def _is_best(self, value: float, loss: float) -> bool:
        best = self.state.best_value
        if not math.isfinite(value):
            return False
        if best is None:
            return True
        if self._is_nothing(value) and self._is_nothing(best):
            # The first weights, which write the same letter always, are at 100 % of wrong words;
            # those that begin to write words are above it.
            return self.state.best_loss is not None and loss < self.state.best_loss
        return value < best if self.lower_is_better else value > best

    def _is_nothing(self, value: float) -> bool:
        """Return True if ``value`` is no better than the score of a model whose output is always
        empty. It is False for metrics in which such a model has no fixed score, such as the
        loss."""
        if self.lower_is_better:
            return self.updater.settings.metric in ERROR_RATES and value >= 100
        return value <= 0

    @contextmanager
    def _in_place(self, values: Tensor | None) -> Iterator[None]:
        """Use ``values`` as the weights of the model inside the ``with`` block."""
        if values is None:
            yield
            return
        swap(self.updater.flat.values, values)
        refresh(self.updater.model)
        try:
            yield
        finally:
            swap(self.updater.flat.values, values)
            refresh(self.updater.model)
