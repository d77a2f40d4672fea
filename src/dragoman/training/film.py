"""The film of a training run: a few snapshots of its weights from update 0 on, in RUN/film/, to
show how the model learned.

::

    RUN/film/00000000.safetensors …   the weights after that many updates, in fp16

The updates are spread evenly on a logarithmic scale, because a model changes most at the beginning.
They depend only on the settings, so a run that was killed and resumed has the same film. Nothing is
trained or averaged from a film, and a run works without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.base.atomic import sweep
from dragoman.training.settings import TrainingSettings
from dragoman.training.weights import save_weights

MOST_PARAMETERS = 20_000_000
"""Unless a recipe sets the length of its film, only a model of fewer parameters has one."""
_USUAL_LENGTH = 20
_LARGEST = torch.finfo(torch.float16).max


class Film:
    """Writes the film of one run while it is trained."""

    def __init__(self, folder: Path, settings: TrainingSettings, model: nn.Module) -> None:
        """``folder``: the folder of the film, which need not exist yet."""
        length = settings.film
        if length is None:
            parameters = sum(parameter.numel() for parameter in model.parameters())
            length = _USUAL_LENGTH if parameters < MOST_PARAMETERS else 0
        self._folder = folder
        self._length = length
        self.plan(settings)

    def plan(self, settings: TrainingSettings) -> None:
        """Spread the film over the updates of ``settings``, which were corrected."""
        self._updates = film_updates(settings, self._length)

    def sweep(self) -> None:
        """Remove half-written files that killed processes left."""
        sweep(self._folder)

    def is_due(self, update: int) -> bool:
        """Return True if the weights after ``update`` belong to the film."""
        return update in self._updates

    def keep(self, update: int, weights: Mapping[str, Tensor]) -> None:
        """Write the weights after ``update``. Raises FileError if they cannot be written."""
        halves = {
            name: tensor.detach().clamp(-_LARGEST, _LARGEST).half()
            for name, tensor in weights.items()
        }
        path = self._folder / f"{update:08d}.safetensors"
        # A power cut may cost the last picture; a training never needs it.
        save_weights(path, halves, {"weights": "last", "update": str(update)}, forced=False)


def film_updates(settings: TrainingSettings, length: int) -> frozenset[int]:
    """Return the updates of a film: at most ``length``, the first of them 0.

    If the plan was corrected after the first minute, the updates until then are those of the first
    plan, and the rest are spread over the new one.
    """
    first = settings.first_plan
    if first is None:
        begun = frozenset({0, 1} if length > 2 else {0} if length else ())
        return begun | _spread(1, settings.updates, length - len(begun))
    before = settings.model_copy(update={"first_plan": None, "updates": first.updates})
    begun = frozenset(u for u in film_updates(before, length) if u <= first.until)
    return begun | _spread(first.until, settings.updates, length - len(begun))


def _spread(after: int, last: int, count: int) -> frozenset[int]:
    """Return at most ``count`` updates from ``after`` to ``last`` whose logarithms are evenly
    spread, without ``after``."""
    steps = range(1, count + 1)
    return frozenset(round(after * (last / after) ** (step / count)) for step in steps)
