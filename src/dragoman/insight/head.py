"""The queries, keys, values, scores, weights and output of all heads of one attention layer.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                             (paper, equation 1)

Paper to code: Q ``queries``, K ``keys``, V ``values``. Shapes: H heads; T tokens look, S tokens are
looked at; D is the width of the model, d_k that of a head's queries and keys, d_v that of its
values. For the parts of a single weight, see ``engine/attention.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.base.errors import DragomanError
from dragoman.engine.predictor import Predictor
from dragoman.engine.session import begin_part, teacher_forced
from dragoman.insight.subject import transformer_of
from dragoman.models.interface import AttentionLayer, Part
from dragoman.nn.probes import Point, Probe
from dragoman.pictures.labels import labels

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OpenedAttention:
    """Everything that one attention layer computed for one translation, for all of its H heads."""

    source: str
    """The sentence that the model read."""
    attention: AttentionLayer
    """The attention layer with all its heads."""
    looking: Sequence[str]
    """The T tokens that look, one for each row of ``queries``."""
    looked_at: Sequence[str]
    """The S tokens that are looked at, one for each row of ``keys``."""
    inputs: Array
    """(T, D): the rows from which the queries are computed."""
    queries: Array
    """The queries, of shape (H, T, d_k)."""
    keys: Array
    """The keys, of shape (H, S, d_k)."""
    values: Array
    """The values, of shape (H, S, d_v)."""
    weights: Array
    """The weights (H, T, S) after the softmax, as the model computed them."""
    joined: Array
    """(T, H x d_v): the outputs of the heads side by side, Concat(head_1, ..., head_h), before W^O.
    """
    scale: float
    """The factor by which scores are multiplied: 1 / √d_k, or 1 for a model that does not scale
    them."""

    @property
    def scores(self) -> Array:
        """The scores (H, T, S): Q Kᵀ, before they are multiplied by ``scale``."""
        return self.queries @ self.keys.transpose(0, 2, 1)


def open_attention(
    predictor: Predictor[object], part: Part, layer: int, source: str, target_ids: Sequence[int]
) -> OpenedAttention:
    """Run the model on ``source`` and a translation of it, and return what one attention layer
    computed.

    ``part``: encoder, decoder or cross; ``layer`` counts from 0; ``target_ids``: the tokens of the
    translation. Errors: ``DragomanError`` for an attention that the model does not have.
    """
    run = predictor.run
    model = transformer_of(predictor.plain)
    layers = model.attentions_of(part)
    if not 0 <= layer < len(layers):
        raise DragomanError(
            f"there is no layer {layer + 1} of {part} attention; this run has {len(layers)} of them"
        )
    attention = layers[layer]
    ids = predictor.source_ids(source)
    prefix = [run.target_text.bos, *target_ids]
    begin_part()
    probe = Probe(points=("input", "query", "key", "value", "heads"))
    teacher_forced(model, [ids], [prefix], probe)

    def of_heads(point: Point) -> Array:
        return _array(probe.taken[attention.name, point][0])  # (H, T, K) of the one sentence

    source_words = labels(run.source_text.pieces(ids))
    target_words = labels(run.target_text.pieces(prefix))
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
    """Return the weights (T, S) and outputs (T, d_v) of one head, computed in plain loops, one
    number at a time. ``queries`` (T, d_k), ``keys`` (S, d_k), ``values`` (S, d_v); scores are
    multiplied by ``scale``."""
    weights, outputs = [], []
    for query in queries:
        scores = [sum(q * k for q, k in zip(query, key, strict=True)) for key in keys]  # step 1
        scaled = [score * scale for score in scores]  # step 2
        largest = max(scaled)
        grown = [math.exp(score - largest) for score in scaled]
        row = [value / sum(grown) for value in grown]  # step 3
        weights.append(row)
        columns = zip(*values, strict=True)
        outputs.append([sum(w * v for w, v in zip(row, c, strict=True)) for c in columns])  # 4
    return weights, outputs


def _array(rows: torch.Tensor) -> Array:
    return rows.double().numpy()
