"""Learning rates of layers, for a model whose lower layers were trained before (ULMFiT)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import nn

from dragoman.nn.embedding import Embedding, Positions
from dragoman.nn.layers import Stack
from dragoman.training.optimizer import FlatParameters
from dragoman.training.settings import LayerSettings


class LayerRates:
    """The share of the learning rate that each part of the flat parameters has.

    The shares follow two rules of ULMFiT (Howard and Ruder, 2018, §3.2 and §3.3), which are off by
    default. *Discriminative rates*: η_{l-1} = decay · η_l, so that the layers near the input, which
    are the most general, change least. *Gradual unfreezing*: at first, only the top is trained,
    then one more layer after every ``thaw`` updates, so that the gradients of an untrained head do
    not destroy what the layers below have learned.

    Neither the weights of a frozen layer nor their moments in Adam change, and its gradient is left
    out of every gradient norm. When the layer thaws, its moments begin at 0, but Adam's step count
    continues. For some tens of updates, the steps of the layer are therefore larger than they would
    be if its step count also began at 0: up to about 1.5 times with β₁ = 0.9 and β₂ = 0.98.
    """

    def __init__(self, model: nn.Module, flat: FlatParameters, settings: LayerSettings) -> None:
        self._settings = settings
        deep = depths(model)
        self._top = max(deep.values(), default=0)
        self._spans = list(_spans(flat, deep))

    def at(self, update: int) -> list[tuple[slice, float]]:
        """Return parts of the buffer, each with its share of the learning rate in update ``update``
        (from 1). The share of frozen parts is 0. The list is empty if all parts have the full
        learning rate."""
        settings = self._settings
        if settings.decay == 1.0 and not settings.thaw:
            return []
        thawed = (update - 1) // settings.thaw if settings.thaw else self._top
        return [
            (span, settings.decay**below if below <= thawed else 0.0)
            for span, depth in self._spans
            for below in [self._top - depth]
        ]


def depths(model: nn.Module) -> dict[str, int]:
    """Return the distance of each parameter from the input: 0 for embeddings, then 1 more for each
    layer, and 1 more than the last layer for the parts above the layers. If the model is a body
    with a head on top, only the head is above the layers; other parts of the body, such as its last
    norm, are as far as its last layer."""
    depth_of: dict[str, int] = {}
    layers = 0
    for name, module in model.named_modules():
        if isinstance(module, Stack):
            for number, layer in enumerate(module):
                for parameter, _ in layer.named_parameters(prefix=f"{name}.{number}"):
                    depth_of[parameter] = layers + 1 + number
            layers += len(module)
        elif isinstance(module, Embedding | Positions):
            depth_of |= {parameter: 0 for parameter, _ in module.named_parameters(prefix=name)}
    top = layers + 1
    for name, _ in model.named_parameters():
        depth_of.setdefault(name, layers if name.startswith("body.") else top)
    return depth_of


def _spans(flat: FlatParameters, deep: Mapping[str, int]) -> Iterator[tuple[slice, int]]:
    """Yield the spans of neighbouring parameters of the same depth, in the order of the buffer."""
    begin, last = 0, None
    for name, span in flat.spans.items():
        if last is not None and deep[name] != last:
            yield slice(begin, span.start), last
            begin = span.start
        last = deep[name]
    if last is not None:
        yield slice(begin, len(flat.values)), last


def within(
    shares: Sequence[tuple[slice, float]], spans: Sequence[slice]
) -> list[tuple[slice, float]]:
    """Return the parts of ``shares`` (see ``Adam.step``) that are within ``spans``. ``shares`` and
    ``spans`` are in the order of the buffer."""
    if not shares:
        return [(span, 1.0) for span in spans]
    return [
        (slice(max(a.start, b.start), min(a.stop, b.stop)), share)
        for a, share in shares
        for b in spans
        if a.start < b.stop and b.start < a.stop
    ]
