"""The size of model that this machine can train in a given time.

Without a limit, a corpus gets the row of ``TABLE`` for its pairs (``tasks/translation/sizes.py``),
and text without translations the row of ``TEXT_TABLE`` for its characters
(``sizing/text_alone.py``). In a short time, a smaller model learns more: it is faster, and needs
fewer examples before it translates anything. So sizes are tried from that row down, each timed for
a second or two on random sentences, until one sees enough tokens in the time. A small model also
gets more and smaller updates: it needs their number more than their size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from dragoman.base.wording import plural
from dragoman.data.batches import make_batch
from dragoman.models.catalogue.networks import new_network
from dragoman.models.interface import Writing, writing
from dragoman.models.settings import ModelSettings
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.sizing.minutes import min_tokens
from dragoman.sizing.size import Size, for_passes, settings_of, size_for
from dragoman.training.distributed import Ranks, own_device, processes
from dragoman.training.fastest_way import fastest_way, measure_throughput
from dragoman.training.losses.objectives import next_token
from dragoman.training.minutes import SHARE
from dragoman.training.settings import OptimizerSettings, TrainingSettings
from dragoman.training.update import Batches

UPDATES_WANTED = {"adam": 2_000, "muon": 500}
"""The number of updates by optimizer: if there are few tokens, updates are made smaller to reach
it. Muon needs fewer, larger updates, and each costs more."""
SMALLEST_UPDATE = 512
"""The fewest target tokens of an update: smaller updates are noisy, and no faster."""
SMALLEST_TEXT_UPDATE = 1_024
"""The fewest tokens of an update for text without translations, whose windows are long."""
ENOUGH = {"adam": 2.0, "muon": 4.0}
"""Factors by optimizer: a size is chosen if it sees this many times the tokens that it needs before
it translates anything. Then it learns more than a smaller one in the same time
(docs/experiments.md)."""

_SENTENCES = 64
_LENGTH = 16


def size_in(
    minutes: float,
    say: Say,
    task: Spec,
    family: str,
    rows: Sequence[Size],
    length: float = 0.0,
    epoch: float = math.inf,
) -> Size:
    """The size of a model for so many minutes, for a family of models (``size.py``): the first of
    ``rows`` that sees enough tokens, or the last. ``rows``: the sizes to try, largest first; the
    first is the size without a limit. ``say`` gets a message if the choice differs from it.
    ``length``: tokens of a target; ``epoch``: tokens of all targets.

    Updates are smaller than in the table if there would be too few of them.
    """
    whole = 0.0
    for size in rows:
        tokens = (1 - SHARE) * 60 * minutes * tokens_per_second(task, family, size) * processes()
        needed = min_tokens(task, size.model_dim, length, epoch, size.optimizer)
        enough = ENOUGH[size.optimizer] * needed
        whole = whole or minutes * enough / tokens
        if tokens >= enough:
            break
    fitted = smaller_updates(size, tokens, reads=task.reads)
    dropped = for_passes(fitted, family, tokens / max(1.0, epoch))
    if fitted == rows[0]:
        return dropped
    message = f"chosen for {plural(minutes, 'minute')}: {_describe(fitted, task)}. "
    if size == rows[0]:
        message += f"Without a limit, updates have {size.tokens_per_update:,} tokens"
    else:
        message += (
            f"This text is enough for a larger model: {_describe(rows[0], task)}, which learns "
            f"more, takes about --minutes {math.ceil(whole)} or more"
        )
        message += "" if tokens >= enough else ". Even this model will learn little"
    say(message)
    return dropped


def smaller_updates(size: Size, tokens: float, *, reads: bool = True) -> Size:
    """The size with updates small enough for ``UPDATES_WANTED`` of them in ``tokens`` target
    tokens. ``reads``: False for text without translations.

    The learning rate falls with the root of their size, as their noise grows; but not for text
    without translations, because Adam averages over more of them (``sizing/text_alone.py``).
    """
    smallest = SMALLEST_UPDATE if reads else SMALLEST_TEXT_UPDATE
    wanted = int(tokens / UPDATES_WANTED[size.optimizer])
    held = min(size.tokens_per_update, max(smallest, wanted // 64 * 64))
    if not reads:
        return replace(size, tokens_per_update=held)
    share = (held / size.tokens_per_update) ** 0.5
    return replace(
        size,
        tokens_per_update=held,
        peak=float(f"{share * size.peak:.2g}"),
        peak_with_adam=share * size.peak_with_adam,
    )


def _describe(size: Size, task: Spec) -> str:
    """Return the width, the layers and the tokens of an update, for people."""
    layers = f"{size.layers}+{size.layers}" if task.reads else f"{size.layers}"
    parts = f"width {size.model_dim}, {layers} layers"
    return f"{parts}, updates of {size.tokens_per_update:,} tokens"


def tokens_per_second(task: Spec, family: str, size: Size) -> float:
    """Target tokens per second when this machine trains a model of this size."""
    size, device = size_for(family, size), own_device()
    shape, tokens = settings_of(family, task, size), int(size.plan["tokens_per_micro_batch"])
    low = device != "cpu" and torch.cuda.is_bf16_supported(including_emulation=False)
    optimizer = OptimizerSettings(kind=size.optimizer)
    settings = TrainingSettings(precision="bf16" if low else "auto", optimizer=optimizer)
    # A GPU takes as long for a few sentences as for a full micro-batch.
    count = _SENTENCES if device == "cpu" else max(_SENTENCES, tokens // _LENGTH)
    model, batches = _random_work(task, shape, size.vocabulary, count)
    return _measure_speed(model, settings, batches)


def speed_of(recipe: Recipe) -> float:
    """Target tokens per second when this machine trains by a recipe in its fastest way."""
    count = max(1, recipe.plan.tokens_per_micro_batch // _LENGTH)
    model, batches = _random_work(recipe.spec, recipe.model, recipe.text.vocabulary, count)
    objective = next_token(model, recipe.training.label_smoothing)
    ranks = Ranks(device=own_device())
    way = fastest_way(model, objective, recipe.training, batches, ranks=ranks).way
    return _measure_speed(model, recipe.training.model_copy(update={"way": way}), batches)


def _random_work(
    task: Spec, shape: ModelSettings, vocabulary: int, count: int
) -> tuple[Writing, Batches]:
    """Make a new model and batches for it, of ``count`` random sentences each."""
    draw = torch.Generator().manual_seed(0)
    sentences = list(torch.randint(3, vocabulary, (count, _LENGTH - 1), generator=draw))
    batch = make_batch(sentences if task.reads else None, sentences, 1, 2)
    return writing(new_network(shape, vocabulary, vocabulary)), lambda *_: [lambda: batch]


def _measure_speed(model: Writing, settings: TrainingSettings, batches: Batches) -> float:
    """Measure the speed of training a model, in target tokens per second."""
    objective, ranks = next_token(model, settings.label_smoothing), Ranks(device=own_device())
    measured = measure_throughput(
        model, objective, settings, batches, seconds=1.0, most=10, ranks=ranks
    )
    return measured.tokens_per_second
