"""What the residual stream and the layer norms do, sub-layer by sub-layer, in a trained run.

Post-norm, the paper's (§3.1, §5.4): x becomes LayerNorm(x + Sublayer(x)). Pre-norm: x becomes
x + Sublayer(LayerNorm(x)). A model without residual connections does not add x. Measured per row
(token), averaged over all rows of some sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.engine.predictor import Predictor
from dragoman.insight.needs import transformer_of
from dragoman.insight.session import teacher_forced
from dragoman.models.transformer.model import Sublayer
from dragoman.nn.probes import Point, Probe


@dataclass(frozen=True)
class SublayerStatistics:
    """One sub-layer. Sizes are root mean squares over a row's dimensions, averaged over rows."""

    sublayer: Sublayer
    """Which it is."""
    stream: float
    """Size of x, what comes in along the residual connection."""
    added: float
    """Size of Sublayer(·), what is added to it."""
    agreement: float
    """Cosine between the two: 0 adds something new, 1 says the same again."""
    summed: float
    """Size of x + Sublayer(·)."""
    after: float
    """Size of what goes on: after the norm (post) or the sum itself (pre)."""
    gain: float | None
    """Mean of the norm's gain (γ); None where there is no norm."""
    bias: float | None
    """Root mean square of the norm's bias (β); likewise."""


def layer_statistics(
    predictor: Predictor, pairs: Sequence[tuple[str, str]]
) -> list[SublayerStatistics]:
    """Read ``pairs`` by force, and measure around every sub-layer, in the order of computing."""
    run = predictor.run
    model = transformer_of(predictor.plain)
    sources = [predictor.source_ids(source) for source, _ in pairs]
    bos = run.target_text.bos
    targets = [[bos, *ids] for ids in run.target.tokens([target for _, target in pairs])]
    probe = Probe(points=("stream", "added", "after"))
    teacher_forced(model, sources, targets, probe)
    return [_measured(sublayer, probe) for sublayer in model.sublayers]


def _measured(sublayer: Sublayer, probe: Probe) -> SublayerStatistics:
    def rows(point: Point) -> Tensor:
        return probe.taken[sublayer.name, point].double()

    x, y = rows("stream"), rows("added")
    norm = {name: values.detach().double() for name, values in sublayer.norm.named_parameters()}
    return SublayerStatistics(
        sublayer,
        _size(x),
        _size(y),
        float(torch.cosine_similarity(x, y, dim=-1).mean()),
        _size(x + y),
        _size(rows("after")),
        float(norm["weight"].mean()) if norm else None,
        float(norm["bias"].square().mean().sqrt()) if norm else None,
    )


def _size(rows: Tensor) -> float:
    return float(rows.square().mean(dim=-1).sqrt().mean())
