"""How much each head matters: the loss when its output is set to zero.

The experiment of Michel, Levy and Neubig, *Are Sixteen Heads Really Better than One?* (2019), on
any run: most heads can go, a few cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.engine.predictor import Predictor
from dragoman.insight.parts import begin_part
from dragoman.insight.session import InspectionSession, Intervention


@dataclass(frozen=True)
class Importance:
    """Loss of some pairs with every head at work, and with each head switched off in turn."""

    sentences: int
    tokens: int
    """Target tokens, end symbols included."""
    whole: float
    """Loss with all heads: -log P, in nats per target token."""
    without: dict[str, NDArray[np.float64]]
    """"encoder", "decoder", "cross" -> (L, H) losses with that one head off."""

    def grown(self, kind: str) -> NDArray[np.float64]:
        """(L, H): by how much the loss grows, in nats per token."""
        return self.without[kind] - self.whole

    def ranked(self) -> list[tuple[str, int, int, float]]:
        """(attention, layer, head, growth) from the most needed head down, counted from 0."""
        every = [
            (kind, int(layer), int(head), float(self.grown(kind)[layer, head]))
            for kind, losses in self.without.items()
            for layer, head in np.ndindex(*losses.shape)
        ]
        return sorted(every, key=lambda one: -one[3])


def head_importance(predictor: Predictor, pairs: Sequence[tuple[str, str]]) -> Importance:
    """Score ``pairs`` of source and reference once with all heads, then without each of them."""
    whole, tokens = _loss(predictor, pairs, Intervention())
    session = InspectionSession(predictor.engine, predictor)
    losses = session.without_each_head(lambda under: _loss(predictor, pairs, under)[0])
    without = {part: np.array(of_layers) for part, of_layers in losses.items()}
    return Importance(len(pairs), tokens, whole, without)


def _loss(
    predictor: Predictor, pairs: Sequence[tuple[str, str]], under: Intervention
) -> tuple[float, int]:
    """-log P per token over all pairs, and the number of tokens."""
    begin_part()
    with under.probe():
        written = predictor.engine.target.tokens([output for _, output in pairs])
        scored = predictor.score_ids([source for source, _ in pairs], written)
    values = [value for one in scored for value in one.token_log_probabilities]
    return -sum(values) / max(len(values), 1), len(values)
