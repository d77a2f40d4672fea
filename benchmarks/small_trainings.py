"""Training one small Transformer in this process, for questions that need many of them.

It trains by the project's own updates (``training/update.py``): a fixed number of them, a cosine
schedule, no label smoothing, no dropout unless the settings have some. ``heldout`` is a loss by
teacher forcing.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dragoman.data.batches import Batch, make_batch
from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Splits
from dragoman.training.losses.objectives import next_token
from dragoman.training.schedule import ScheduleSettings, make_schedule
from dragoman.training.settings import TrainingSettings
from dragoman.training.update import Updater

BOS, EOS, FIRST = 1, 2, 3
"""Ids of the symbols, and of the first token (0 is ``<unk>``)."""

Tokens = npt.NDArray[np.int32]
Pair = tuple[Tokens, Tokens]


@dataclass(frozen=True)
class Plan:
    """How long a training is, and how it goes."""

    updates: int
    pairs: int
    """In each update."""
    peak: float
    """The highest learning rate."""
    warmup: int
    clip: float = 1.0


def options_of(
    about: str, tiny: str, plan: Plan, seeds: Sequence[int], results: Path
) -> tuple[bool, Plan, Sequence[int], Path]:
    """What the command line says: whether it is the whole in little, how each training goes, of
    which seeds, and into which file of results. ``tiny``: what the whole in little is."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--tiny", action="store_true", help=tiny)
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds)
    parser.add_argument("--to", type=Path, default=results, help="the file of results")
    given = parser.parse_args()
    if given.tiny:
        return True, Plan(updates=4, pairs=4, peak=1e-3, warmup=2), (1,), given.to
    return False, plan, given.seeds, given.to


def use_one_thread() -> None:
    """As many threads as ``OMP_NUM_THREADS`` says; one if it says nothing."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def train(
    sizes: dict[str, Any],
    vocabulary: int,
    plan: Plan,
    seed: int,
    drawn: Callable[[np.random.Generator, int], Sequence[Pair]],
) -> Transformer:
    """A model with ``sizes``, from nothing. ``drawn``: so many pairs of training, by chance."""
    torch.manual_seed(seed)
    settings = TransformerSettings.model_validate(sizes)
    model = Transformer(settings, vocabulary, vocabulary)
    training = TrainingSettings(clip_norm=plan.clip, precision="fp32")
    schedule = make_schedule(
        ScheduleSettings(kind="cosine", warmup=plan.warmup, peak=plan.peak),
        model_dim=settings.model_dim,
        updates=plan.updates,
    )
    updater = Updater(model, next_token(model, 0.0), training, schedule, Ranks())
    state = TrainingState()
    updater.repeat_choices(state)

    def batches(update: int, *_: int) -> list[Callable[[], Batch]]:
        random = np.random.default_rng([seed, update])
        return [lambda: batch_of(drawn(random, plan.pairs))]

    model.train()
    with TemporaryDirectory() as folder:
        gradients = updater.gradients(seed, Splits(Path(folder)), lambda _: None)
        while state.update < plan.updates:
            updater.update(state, batches, gradients)
    return model.eval()


def heldout(model: Transformer, pairs: Sequence[Pair], at_once: int = 50) -> float:
    """Nats for each token of the targets, their ends counted, given those before it."""
    objective, total, count = next_token(model, 0.0), 0.0, 0
    with torch.inference_mode():
        for first in range(0, len(pairs), at_once):
            sums = objective(model, batch_of(pairs[first : first + at_once]))
            total, count = total + float(sums.nll), count + sums.tokens
    return total / count


def batch_of(pairs: Sequence[Pair]) -> Batch:
    return make_batch([source for source, _ in pairs], [target for _, target in pairs], BOS, EOS)
