"""How fast this machine trains a model: measured before a run, to turn minutes into updates."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

from dragoman.native.allocator import peak_bytes
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Splits
from dragoman.training.losses.objectives import Objective
from dragoman.training.settings import TrainingSettings
from dragoman.training.update import Batches, Updater


@dataclass(frozen=True)
class Throughput:
    """What was measured."""

    tokens_per_second: float
    """Target tokens, end symbols counted."""
    seconds_per_update: float
    updates: int
    """How many were timed, after one that was not."""
    peak_bytes: int
    """The most memory that this process has held so far; on a GPU, of the GPU's."""


def measure_throughput(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    batches: Batches,
    *,
    seconds: float = 5.0,
    most: int = 30,
    ranks: Ranks | None = None,
) -> Throughput:
    """Make updates 0, 1, 2, … at learning rate 0: the weights stay as they are.

    It takes ``seconds``, or ``most`` updates if that is sooner, so that a training of seconds does
    not wait for it. At least one update is timed, however long it takes. All ``ranks`` measure
    together, as they will train; left out, this process is alone.
    """
    ranks = ranks or Ranks()
    updater = Updater(model, objective, settings, lambda _: 0.0, ranks)
    state = TrainingState()
    updater.repeat_choices(state)
    tokens, spent, on_cpu = 0, 0.0, ranks.device.type == "cpu"
    if not on_cpu:  # whatever was trained before
        torch.cuda.reset_peak_memory_stats(ranks.device)
    with TemporaryDirectory() as folder:
        gradients = updater.gradients(0, Splits(Path(folder)), lambda _: None)
        while ranks.any(state.update < 2 or (spent < seconds and state.update <= most)):
            began = time.perf_counter()
            record = updater.update(state, batches, gradients)
            if state.update > 1:  # the first one warms up
                spent += time.perf_counter() - began
                tokens += record.tokens
    peak = peak_bytes() if on_cpu else torch.cuda.max_memory_allocated(ranks.device)
    updates = state.update - 1
    return Throughput(tokens / spent, spent / updates, updates, peak)
