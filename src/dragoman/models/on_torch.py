"""A model that torch runs, as a search speaks with it: arrays become tensors and back.

On the host they are the same memory; a model on another device has its share moved there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from dragoman.models.interface import DecodeState, Generates, Memory
from dragoman.models.searched import (
    Constrain,
    Floats32,
    Integers,
    SearchModel,
    SearchSession,
    Source,
)
from dragoman.native.abi import Step
from dragoman.nn.layout import Layout, Sequences


class OnTorch(SearchModel):
    """A search's view of ``model``, which is on ``device``."""

    def __init__(self, model: Generates, device: torch.device | str = "cpu") -> None:
        self.model = model
        self.device = torch.device(device)

    @torch.no_grad()
    def begin(self, sources: Sequence[Source]) -> SearchSession:
        return _SearchingOnTorch(self, self.model.start(self.encode(sources)))

    def encode(self, sources: Sequence[Source]) -> Memory:
        values = np.concatenate([np.asarray(source) for source in sources])
        layout = Layout([len(source) for source in sources])
        batch = Sequences(torch.from_numpy(values), layout)
        return self.model.encode(batch.to(self.device))


class _SearchingOnTorch(SearchSession):
    def __init__(self, searched: OnTorch, state: DecodeState) -> None:
        self._searched, self._state = searched, state
        self._model, self._device = searched.model, searched.device
        # A move from host to host costs microseconds too.
        self._on_host = self._device.type == "cpu"

    @torch.no_grad()
    def select(self, rows: Integers) -> None:
        self._state.select(self._to_device(rows))

    @torch.no_grad()
    def admit(self, sources: Sequence[Source]) -> None:
        self._state.admit(self._searched.encode(sources))

    @torch.no_grad()
    def best(
        self, tokens: Integers, k: int, constrain: Constrain | None = None
    ) -> tuple[Floats32, Integers]:
        adjust = None if constrain is None else partial(_adjust, constrain)
        found = self._model.best(self._to_device(tokens), self._state, k, adjust)
        log_probabilities, ids = found if self._on_host else (each.cpu() for each in found)
        return log_probabilities.numpy(), ids.numpy()

    def native(self, k: int, length: int) -> Step | None:
        return self._state.native(k, length)

    def _to_device(self, array: Integers) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor if self._on_host else tensor.to(self._device)


def _adjust(constrain: Constrain, log_probabilities: Tensor) -> Tensor:
    """Applies a ``Constrain``, which works on the host, to a tensor of any device."""
    host = torch.from_numpy(constrain(log_probabilities.cpu().numpy()))
    return host.to(log_probabilities.device)
