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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from dragoman.base.wording import plural
from dragoman.data.batches import make_batch
from dragoman.models.catalogue.networks import new_network
from dragoman.models.interface import writing
from dragoman.models.settings import ModelSettings
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.spec import Spec
from dragoman.sizing.minutes import min_tokens
from dragoman.sizing.size import Size, learned_by, settings_of
from dragoman.training.distributed import Ranks, own_device, processes
from dragoman.training.fastest_way import measure_throughput
from dragoman.training.losses.objectives import next_token
from dragoman.training.minutes import SHARE
from dragoman.training.settings import OptimizerSettings, TrainingSettings

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
    length: float,
    epoch: float,
) -> Size:
    """The size of a translator for so many minutes, for a family of models (``size.py``). ``rows``:
    the sizes to try, largest first; the first is the size without a limit. ``say`` gets a message
    if the choice differs from it. ``length``: tokens of a target; ``epoch``: tokens of all targets.

    Updates are smaller than in the table if there would be too few of them.
    """
    needed = partial(_needed_tokens, task, length=length, epoch=epoch)
    taught = _taught_in(minutes, rows, partial(tokens_per_second, task, family), needed)
    fitted = smaller_updates(taught.size, taught.tokens)
    if fitted != rows[0]:
        say(_choice_message(minutes, taught, fitted, rows[0], "{0}+{0} layers"))
    return fitted


def text_size_in(minutes: float, say: Say, task: Spec, family: str, rows: Sequence[Size]) -> Size:
    """The size of a model of text without translations for so many minutes; see ``size_in``.

    The learning rate does not fall with the size of the updates, because Adam averages over more of
    them (``sizing/text_alone.py``).
    """
    taught = _taught_in(
        minutes, rows, partial(text_tokens_per_second, task, family), partial(_needed_tokens, task)
    )
    update = _update(taught.size, taught.tokens, SMALLEST_TEXT_UPDATE)
    fitted = replace(taught.size, tokens_per_update=update)
    if fitted != rows[0]:
        say(_choice_message(minutes, taught, fitted, rows[0], "{0} layers"))
    return fitted


def smaller_updates(size: Size, tokens: float) -> Size:
    """The size with updates small enough for ``UPDATES_WANTED`` of them in ``tokens`` target
    tokens.

    The learning rate falls with the root of their size, as their noise grows.
    """
    held = _update(size, tokens, SMALLEST_UPDATE)
    peak = size.peak * (held / size.tokens_per_update) ** 0.5
    return replace(size, tokens_per_update=held, peak=float(f"{peak:.2g}"))


def tokens_per_second(task: Spec, family: str, size: Size) -> float:
    """Target tokens per second when this machine trains a translator of this size."""
    return _measure_speed(learned_by(family, size), settings_of(family, task, size), reads=True)


def text_tokens_per_second(task: Spec, family: str, size: Size) -> float:
    """Tokens per second when this machine trains a language model of this size."""
    return _measure_speed(size, settings_of(family, task, size), reads=False)


@dataclass(frozen=True)
class _Taught:
    """The size that a time is enough for."""

    size: Size
    tokens: float
    """Target tokens that a model of this size sees in the time."""
    is_enough: bool
    """True if these are enough to learn well."""
    whole: float
    """The minutes in which the largest size would see enough tokens."""


def _taught_in(
    minutes: float,
    sizes: Sequence[Size],
    speed_of: Callable[[Size], float],
    needed: Callable[[Size], float],
) -> _Taught:
    """The first of ``sizes`` that sees enough tokens in the time, or the last one. ``needed``: the
    tokens after which a model of a size begins to learn."""
    whole = 0.0
    for size in sizes:
        tokens = (1 - SHARE) * 60 * minutes * speed_of(size) * processes()
        enough = ENOUGH[size.optimizer] * needed(size)
        whole = whole or minutes * enough / tokens
        if tokens >= enough:
            break
    return _Taught(size, tokens, tokens >= enough, whole)


def _needed_tokens(task: Spec, size: Size, length: float = 0.0, epoch: float = math.inf) -> float:
    return min_tokens(task, size.model_dim, length, epoch, size.optimizer)


def _update(size: Size, tokens: float, smallest: int) -> int:
    """Target tokens of an update, small enough for the wanted number of updates in ``tokens``."""
    wanted = int(tokens / UPDATES_WANTED[size.optimizer])
    return min(size.tokens_per_update, max(smallest, wanted // 64 * 64))


def _choice_message(minutes: float, taught: _Taught, fitted: Size, row: Size, layers: str) -> str:
    """The message about the choice; ``layers``: the format for the number of layers."""

    def written(size: Size) -> str:
        parts = f"width {size.model_dim}, {layers.format(size.layers)}"
        return f"{parts}, updates of {size.tokens_per_update:,} tokens"

    said = f"chosen for {plural(minutes, 'minute')}: {written(fitted)}. "
    if taught.size == row:
        return f"{said}Without a limit, updates have {row.tokens_per_update:,} tokens"
    said += (
        f"This text is enough for a larger model: {written(row)}, which learns more, takes about "
        f"--minutes {math.ceil(taught.whole)} or more"
    )
    return said if taught.is_enough else f"{said}. Even this model will learn little"


def _sentences(size: Size, device: str) -> int:
    """Sentences of a timed micro-batch; a full one for a GPU, where it takes as long as few."""
    whole = int(size.plan["tokens_per_micro_batch"]) // _LENGTH
    return _SENTENCES if device == "cpu" else max(_SENTENCES, whole)


def _measure_speed(size: Size, shape: ModelSettings, *, reads: bool) -> float:
    device = own_device()
    model = writing(new_network(shape, size.vocabulary, size.vocabulary))
    draw = torch.Generator().manual_seed(0)
    count = _sentences(size, device)
    sentences = torch.randint(3, size.vocabulary, (count, _LENGTH - 1), generator=draw)
    batch = make_batch(list(sentences) if reads else None, list(sentences), 1, 2)
    low = device != "cpu" and torch.cuda.is_bf16_supported(including_emulation=False)
    optimizer = OptimizerSettings(kind=size.optimizer)
    settings = TrainingSettings(precision="bf16" if low else "auto", optimizer=optimizer)
    measured = measure_throughput(
        model,
        next_token(model, settings.label_smoothing),
        settings,
        lambda *_: [lambda: batch],
        seconds=1.0,
        most=10,
        ranks=Ranks(device=device),
    )
    return measured.tokens_per_second
