"""One weight of one head, opened: the query, the key, their product, and what the value adds.

    weight = softmax(q · k / √d_k) over the keys,   adds = weight · v W_i^O       (paper, §3.2)

W_i^O are the rows of W^O that belong to head i: Concat(head_1, ..., head_h) W^O is the sum of
head_i W_i^O, and head_i the sum of weight · v, so what single cells add sums to what the attention
makes (its bias apart). T tokens look, S are looked at; D model width, K key width, Kv value width.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.models.interface import AttentionLayer, Network, writing
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe


@dataclass(frozen=True)
class OpenedCell:
    """One cell of an attention map."""

    query: Tensor
    """(K,) of the token that looks."""
    key: Tensor
    """(K,) of the token that is looked at."""
    value: Tensor
    """(Kv,) of the same."""
    product: float
    """q · k."""
    scale: float
    """What it is multiplied by: 1 / √d_k, or 1 where a model was made without."""
    weight: float
    """As the model computed it."""
    adds: Tensor
    """(D,) what this one look adds to the row of the token that looks."""
    head_adds: Tensor
    """(D,) what all looks of the head add to it."""


def attention_of(model: Network, layer: AttentionLayer) -> MultiHeadAttention | None:
    """What computes an attention of a model; None where that has no queries and keys."""
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
