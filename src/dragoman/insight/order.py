"""Without positions the encoder cannot tell who eats whom.

Self-attention is a sum over a set: give it the same words in another order and, but for positions,
each word gets the same row, whatever its place (paper §3.5: "since our model contains no recurrence
and no convolution, in order for the model to make use of the order of the sequence, we must inject
some information about the relative or absolute position of the tokens"). Shown on a trained run by
switching the encoder's positions off and on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.errors import DragomanError
from dragoman.insight.head import shown
from dragoman.insight.needs import transformer_of
from dragoman.insight.parts import begin_part
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OrderReading:
    """What the encoder made of both sentences, with or without positions."""

    positions: bool
    differences: Array
    """(S,): for each token of the first sentence, how far its row is from the row of the same token
    in the second, |a - b| / |a|."""
    translations: tuple[str, str]


@dataclass(frozen=True)
class OrderExperiment:
    """Two sentences of the same tokens in another order, read with positions and without."""

    sentences: tuple[str, str]
    tokens: Sequence[str]
    """Of the first sentence."""
    other_places: Sequence[int]
    """Where each of them stands in the second."""
    with_positions: OrderReading
    without_positions: OrderReading


def order_experiment(predictor: Predictor, first: str, second: str) -> OrderExperiment:
    """Read two sentences that are made of the same tokens.

    Errors: ``DragomanError`` if they are not.
    """
    run = predictor.run
    ids = [predictor.source_ids(first), predictor.source_ids(second)]
    if sorted(ids[0]) != sorted(ids[1]):
        pieces = [" ".join(run.source_text.pieces(one)) for one in ids]
        raise DragomanError(f"not the same tokens in another order: {pieces[0]} | {pieces[1]}")
    places = _places(ids[0], ids[1])
    engine = predictor.engine.over(transformer_of(predictor.plain))
    return OrderExperiment(
        (first, second),
        shown(run.source_text.pieces(ids[0])),
        places,
        _read(engine, ids, places, positions=True),
        _read(engine, ids, places, positions=False),
    )


def _places(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """For each token of the first, its place in the second; equal tokens in their order."""
    free: dict[int, list[int]] = {}
    for place, token in enumerate(second):
        free.setdefault(token, []).append(place)
    return [free[token].pop(0) for token in first]


def _read(
    engine: Engine, ids: Sequence[Sequence[int]], places: Sequence[int], *, positions: bool
) -> OrderReading:
    begin_part()
    with torch.inference_mode(), Probe(positions_off=not positions, record=False):
        one, other = (
            engine.network.encode(Sequences.of([torch.tensor(sentence)])).rows.double().numpy()
            for sentence in ids
        )
        found = engine.search(engine.request(sentence) for sentence in ids)
    first, second = engine.target.raw([hypotheses[0].tokens for hypotheses in found])
    moved = other[list(places)]
    return OrderReading(
        positions,
        np.linalg.norm(one - moved, axis=1) / np.linalg.norm(one, axis=1),
        (first, second),
    )
