"""Measures how fast each way of this machine trains models of known shapes, and how fast each path
translates, for ``dragoman doctor --measure`` and ``benchmarks/ways.py``.

A *way* is a choice of kernels or plain torch, a precision and a number of threads. Training runs
measure the ways for their own model (``training/fastest_way.py``); this module measures them in the
same manner, and stores no result.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch.nn import functional as F

from dragoman.data.batches import Batch, make_batch
from dragoman.models.catalogue.fastest import paths_timed
from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.native import linear
from dragoman.training.arithmetic import computing
from dragoman.training.fastest_way import MeasuredWays, Timing, fastest_way
from dragoman.training.gradients import MakeBatch
from dragoman.training.losses.objectives import next_token
from dragoman.training.settings import TrainingSettings, TrainingWay


@dataclass(frozen=True)
class WayShape:
    """The shape of a model that is measured, and the size of its updates."""

    name: str
    model: TransformerSettings
    vocabulary: int
    tokens: int
    """The number of target tokens of one update."""


def _transformer(width: int, layers: int, heads: int) -> TransformerSettings:
    attention = {"num_heads": heads}
    sizes = {"model_dim": width, "ffn_dim": 4 * width}
    return TransformerSettings.model_validate(
        {**sizes, "encoder_layers": layers, "decoder_layers": layers, "attention": attention}
    )


SHAPES = (
    WayShape("width 128, 2+2 layers", _transformer(128, 2, 4), 1000, 1024),
    WayShape("width 256, 3+3 layers", _transformer(256, 3, 8), 8000, 4096),
    WayShape("base: width 512, 6+6 layers", _transformer(512, 6, 8), 37000, 25_000),
)
"""The shapes of a toy model, of a model for a small corpus, and of the paper's base model."""

_TOKENS_AT_ONCE = 4096
_ROWS, _INPUTS, _OUTPUTS = 1024, 512, 2048
"""The sizes of the matrix products that are measured: those of the first feed-forward layer of the
base model, for 1024 rows."""
_PRODUCT_SECONDS = 0.2


def measure_shape(shape: WayShape, timing: Timing) -> MeasuredWays:
    """Measure how fast each way trains a model of ``shape`` on random sentences."""
    torch.manual_seed(1)
    model = Transformer(shape.model, shape.vocabulary, shape.vocabulary)
    batches, objective = batches_of(shape), next_token(model, 0.1)
    return fastest_way(model, objective, TrainingSettings(), lambda *_: batches, timing=timing)


def batches_of(shape: WayShape) -> list[MakeBatch]:
    """The batches of one update of a model of ``shape``: random sentences, the same in each."""
    at_once = min(shape.tokens, _TOKENS_AT_ONCE)
    batch = _sentences(shape.vocabulary, at_once)
    return [lambda: batch] * round(shape.tokens / at_once)


def products(way: TrainingWay) -> float:
    """Return the operations per second of matrix products by ``way``: the best of those that fit
    into ``_PRODUCT_SECONDS``."""
    x, weight = torch.randn(_ROWS, _INPUTS), torch.randn(_OUTPUTS, _INPUTS)
    dtype = linear.TYPES[way.precision]
    x = x.to(dtype)
    best = float("inf")
    with torch.no_grad(), computing(way):
        if way.by_kernels:
            packed = linear.PackedWeights([weight], way.precision)
            product = partial(linear.forward_rows, x, packed, None)
        else:
            product = partial(F.linear, x, weight.to(dtype))
        until = time.perf_counter() + _PRODUCT_SECONDS
        while (began := time.perf_counter()) < until or best == float("inf"):
            product()
            best = min(best, time.perf_counter() - began)
    return 2.0 * _ROWS * _INPUTS * _OUTPUTS / best


def training_rows(measured: MeasuredWays) -> list[list[str | int | float]]:
    """Return a table row for each way, the fastest first: way, precision, threads, GOP/s of
    products, tokens/s, and why the way is taken or not."""
    rates = measured.rates
    return [
        [
            way.kernels, way.precision, way.threads, round(products(way) / 1e9), round(rates[way]),
            _why(way, measured.way, rates),
        ]
        for way in sorted(rates, key=lambda way: -rates[way])
    ]  # fmt: skip


TRAINING_HEAD = ("way", "precision", "threads", "GOP/s", "tokens/s", "")


def _why(way: TrainingWay, taken: TrainingWay, rates: Mapping[TrainingWay, float]) -> str:
    if way != taken:
        return f"{rates[way] / rates[taken]:.2f} times the rate of the one taken"
    if rates[way] < max(rates.values()):
        return "taken: bf16 is not faster by more than 10 %"
    return "taken: the fastest"


def translating_rows() -> list[list[str | int | float]]:
    """Return a table row for each way to run a small Transformer: path, milliseconds of the steps
    for one sentence and for a batch, and whether the way is taken."""
    return [
        [line, round(single / 1000, 2), round(many / 1000, 2), "taken" if taken else ""]
        for line, single, many, taken in paths_timed()
    ]


TRANSLATING_HEAD = ("way", "one sentence, ms", "12 sentences, ms", "")


def _sentences(vocabulary: int, tokens: int) -> Batch:
    """Make random sentences as long as image captions, with at least ``tokens`` target tokens in
    all."""
    draw = np.random.default_rng(0)
    lengths: list[int] = []
    while sum(lengths) + len(lengths) < tokens:
        lengths.append(int(np.clip(draw.normal(13.5, 4.0), 3, 40)))
    sources, targets = (
        [draw.integers(3, vocabulary, length).astype(np.int32) for length in lengths]
        for _ in range(2)
    )
    return make_batch(sources, targets, bos=1, eos=2)
