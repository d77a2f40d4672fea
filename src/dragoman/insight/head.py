"""This module computes the queries, keys, values, scores, weights and output of one head of an
attention, or the parts of a single weight.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                             (paper, equation 1)
    weight = softmax(q · k / √d_k) over the keys,   adds = weight · v W_i^O       (paper, §3.2)

Paper to code: Q ``queries``, K ``keys``, V ``values``, d_k ``key_width``. W_i^O are the rows of W^O
that belong to head i: Concat(head_1, ..., head_h) W^O is the sum of head_i W_i^O, and head_i the
sum of weight · v, so the parts of single cells sum to the output of the attention (without its
bias). T tokens look, S are looked at; D model width, K key width, Kv value width.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import DragomanError
from dragoman.engine.predictor import Predictor
from dragoman.insight.needs import transformer_of
from dragoman.insight.session import begin_part, teacher_forced
from dragoman.models.interface import AttentionLayer, Network, Part, writing
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Point, Probe
from dragoman.pictures.labels import labels

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OpenedAttention:
    """All heads of one attention of one translation. Shapes: H heads, d_k, d_v widths."""

    source: str
    """The sentence that the model read."""
    attention: AttentionLayer
    """The attention layer with all its heads."""
    looking: Sequence[str]
    """The T tokens that look, of the queries."""
    looked_at: Sequence[str]
    """The S tokens that are looked at, of the keys."""
    inputs: Array
    """The (T, D) rows that queries are made from."""
    queries: Array
    """The queries, of shape (H, T, d_k)."""
    keys: Array
    """The keys, of shape (H, S, d_k)."""
    values: Array
    """The values, of shape (H, S, d_v)."""
    weights: Array
    """The weights (H, T, S), as the model computed them."""
    joined: Array
    """The joined heads (T, H x d_v), Concat(head_1, ..., head_h), before W^O."""
    scale: float
    """The factor of the scores: 1 / √d_k, or 1 for a model without it."""

    @property
    def scores(self) -> Array:
        """The scores (H, T, S), Q Kᵀ before the division."""
        product: Array = self.queries @ self.keys.transpose(0, 2, 1)
        return product


def open_attention(
    predictor: Predictor[object], part: Part, layer: int, source: str, target_ids: Sequence[int]
) -> OpenedAttention:
    """Run one translation and keep the input and output of one attention; layers are from 0.

    Errors: ``DragomanError`` for an attention that the model does not have.
    """
    run = predictor.run
    model = transformer_of(predictor.plain)
    layers = model.attentions_of(part)
    if not 0 <= layer < len(layers):
        raise DragomanError(
            f"there is no layer {layer + 1} of {part} attention; this run has {len(layers)}, from 1"
        )
    attention = layers[layer]
    ids = predictor.source_ids(source)
    prefix = [run.target_text.bos, *target_ids]
    begin_part()
    probe = Probe(points=("input", "query", "key", "value", "heads"))
    teacher_forced(model, [ids], [prefix], probe)

    def of_heads(point: Point) -> Array:
        return _array(probe.taken[attention.name, point][0])  # (H, T, K) of the one sentence

    source_words = shown(run.source_text.pieces(ids))
    target_words = shown(run.target_text.pieces(prefix))
    return OpenedAttention(
        source,
        attention,
        looking=source_words if part == "encoder" else target_words,
        looked_at=target_words if part == "decoder" else source_words,
        inputs=_array(probe.taken[attention.name, "input"]),
        queries=of_heads("query"),
        keys=of_heads("key"),
        values=of_heads("value"),
        weights=_array(probe.attention[attention.name][0]),
        joined=np.concatenate(of_heads("heads"), axis=-1),
        scale=attention.scale,
    )


def softmax(scores: Array) -> Array:
    """Return the softmax over the last axis; the largest score is subtracted first, so that
    nothing overflows."""
    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    share: Array = grown / grown.sum(axis=-1, keepdims=True)
    return share


def by_hand(
    queries: Sequence[Sequence[float]],
    keys: Sequence[Sequence[float]],
    values: Sequence[Sequence[float]],
    scale: float,
) -> tuple[list[list[float]], list[list[float]]]:
    """Return weights (T, S) and outputs (T, d_v) of the four steps in plain loops, one number at
    a time."""
    weights, outputs = [], []
    for query in queries:
        scores = [sum(q * k for q, k in zip(query, key, strict=True)) for key in keys]  # step 1
        scaled = [score * scale for score in scores]  # step 2
        largest = max(scaled)
        grown = [math.exp(score - largest) for score in scaled]
        row = [one / sum(grown) for one in grown]  # step 3
        weights.append(row)
        columns = zip(*values, strict=True)
        outputs.append([sum(w * v for w, v in zip(row, c, strict=True)) for c in columns])  # 4
    return weights, outputs


def shown(pieces: Sequence[str]) -> tuple[str, ...]:
    """Return pieces as labels; punctuation needs no sign that it continues a word."""
    return tuple(
        one if any(c.isalnum() for c in one) else one.removeprefix("-") for one in labels(pieces)
    )


def _array(rows: torch.Tensor) -> Array:
    return rows.double().numpy()


@dataclass(frozen=True)
class OpenedCell:
    """One cell of an attention map."""

    query: Tensor
    """The query (K,) of the token that looks."""
    key: Tensor
    """The key (K,) of the token that is looked at."""
    value: Tensor
    """The value (Kv,) of the token that is looked at."""
    product: float
    """The dot product of query and key, q · k."""
    scale: float
    """The factor of the product: 1 / √d_k, or 1 for a model without it."""
    weight: float
    """The weight, as the model computed it."""
    adds: Tensor
    """(D,) the part of this cell in the row of the token that looks."""
    head_adds: Tensor
    """(D,) the part of the whole head in that row."""


def attention_of(model: Network, layer: AttentionLayer) -> MultiHeadAttention | None:
    """Return the module that computes an attention; None if it has no queries and keys."""
    every = (one for one in model.modules() if isinstance(one, MultiHeadAttention))
    return next((one for one in every if one.name == layer.name), None)


def open_cell(
    model: Network,
    attention: AttentionLayer,
    head: int,
    row: int,
    column: int,
    source: Tensor,
    target: Tensor,
    *,
    heads_off: Collection[tuple[str, int]] = (),
    hidden: Collection[int] = (),
) -> OpenedCell:
    """Run a text and open one cell of an attention that has queries and keys (``attention_of``).
    ``source`` (S,) and ``target`` (T,), the latter with the start symbol, are tokens; ``heads_off``
    and ``hidden`` as ``Probe`` takes them."""
    computes = attention_of(model, attention)
    assert computes is not None, "an attention with queries and keys"
    probe = Probe(heads_off=heads_off, hidden=hidden, points=("query", "key", "value", "heads"))
    with torch.inference_mode(), probe:
        memory = model.encode(Sequences.of([source]))
        if attention.part != "encoder":
            writing(model).decode(Sequences.of([target]), memory)
    taken = {
        point: probe.taken[attention.name, point][0, head]
        for point in ("query", "key", "value", "heads")
    }
    query, key, value = taken["query"][row], taken["key"][column], taken["value"][column]
    weight = float(probe.attention[attention.name][0, head, row, column])
    width = len(value)
    part = computes.output.weight.detach()[:, head * width : (head + 1) * width]  # W_i^O, (D, Kv)
    is_off = (attention.name, head) in heads_off
    at_work = 0.0 if is_off else 1.0
    return OpenedCell(
        query,
        key,
        value,
        product=float(query @ key),
        scale=attention.scale,
        weight=weight,
        adds=at_work * weight * (part @ value),
        head_adds=at_work * (part @ taken["heads"][row]),
    )
