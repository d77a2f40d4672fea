"""What training minimises, and what validation reports of it, for both kinds of detectors."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from dragoman.models.catalogue.set_predictor import SetPredictor
from dragoman.models.interface import Network, Writing
from dragoman.tasks.detection.learning import BoxTokens
from dragoman.tasks.detection.set_loss import SetLoss
from dragoman.training.losses.loss import smoothed_cross_entropy
from dragoman.training.losses.objectives import Objective, cross_entropy_of


def learned(model: Writing, smoothing: float) -> Objective:
    """What training minimises."""
    if isinstance(model, SetPredictor):
        return SetLoss(model.symbols, smoothing)
    return BoxTokens(cross_entropy_of(model, smoothing))


def measured(model: Writing) -> Objective:
    """The same without smoothing, by plain torch."""
    if isinstance(model, SetPredictor):
        return SetLoss(model.symbols, 0.0)
    return BoxTokens(partial(_plain, model))


def _plain(model: Network, hidden: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    return smoothed_cross_entropy(model.project(hidden), wanted, 0.0)
