"""Layers that learn at rates of their own, for a model whose lower layers have learned before.

Two rules of ULMFiT (Howard and Ruder, 2018, §3.2 and §3.3), both off unless somebody sets them.
*Discriminative rates*: η_{l-1} = decay · η_l, so that what lies near the input, and is the most
general, moves least. *Gradual unfreezing*: at first the top alone learns, then one more layer after
every ``thaw`` updates, so that gradients of a head which knows nothing yet do not undo what is
below.

A frozen layer is left as it is: neither its weights nor Adam's moments move, and its gradient
counts in no norm. Its moments begin at 0 when it thaws while Adam's step count goes on: for some
tens of updates its steps are up to about 1.5 times as long as with a count of its own (β₁ = 0.9,
β₂ = 0.98).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import nn

from dragoman.nn.layers import Stack
from dragoman.nn.linear import Embedding
from dragoman.nn.positions import Positions
from dragoman.training.optimizer import FlatParameters
from dragoman.training.settings import LayerSettings


class LayerRates:
    """Which share of the learning rate each part of the flat parameters has."""

    def __init__(self, model: nn.Module, flat: FlatParameters, settings: LayerSettings) -> None:
        self._settings = settings
        deep = depths(model)
        self._top = max(deep.values(), default=0)
        self._spans = list(_spans(flat, deep))

    def at(self, update: int) -> list[tuple[slice, float]]:
        """Parts of the buffer, and the share that each has in update ``update`` (from 1); 0 of
        those that are frozen. Empty where all move alike."""
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
    """How far from the input each parameter is: embeddings 0, then layer by layer, then what stands
    above the layers; what belongs to a stack below a head, such as its last norm, counts as its
    last layer."""
    found: dict[str, int] = {}
    layers = 0
    for name, module in model.named_modules():
        if isinstance(module, Stack):
            for number, layer in enumerate(module):
                for parameter, _ in layer.named_parameters(prefix=f"{name}.{number}"):
                    found[parameter] = layers + 1 + number
            layers += len(module)
        elif isinstance(module, Embedding | Positions):
            found |= {parameter: 0 for parameter, _ in module.named_parameters(prefix=name)}
    top = layers + 1
    for name, _ in model.named_parameters():
        found.setdefault(name, layers if name.startswith("body.") else top)
    return found


def _spans(flat: FlatParameters, deep: Mapping[str, int]) -> Iterator[tuple[slice, int]]:
    """Runs of parameters of one depth, as they lie in the buffer."""
    begin, last = 0, None
    for name, span in flat.spans.items():
        if last is not None and deep[name] != last:
            yield slice(begin, span.start), last
            begin = span.start
        last = deep[name]
    if last is not None:
        yield slice(begin, len(flat.values)), last
