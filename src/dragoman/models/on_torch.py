"""The interface between a search and a model that torch runs: arrays become tensors, and tensors
arrays.

On the host, both share their memory; for a model on another device, they are copied.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

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
    """The interface of a search to ``model``, which is on ``device``."""

    def __init__(self, model: Generates, device: torch.device | str = "cpu") -> None:
        self.model = model
        self.device = torch.device(device)

    @torch.no_grad()
    def begin(self, sources: Sequence[Source]) -> SearchSession:
        return _SearchingOnTorch(self, self.model.start(self.encode(sources)))

    def encode(self, sources: Sequence[Source]) -> Memory:
        values = torch.from_numpy(np.concatenate([np.asarray(source) for source in sources]))
        layout = Layout([len(source) for source in sources], self.device)
        return self.model.encode(Sequences(values.to(self.device), layout))


class _SearchingOnTorch(SearchSession):
    def __init__(self, searched: OnTorch, state: DecodeState) -> None:
        self._searched, self._state = searched, state

    @torch.no_grad()
    def select(self, rows: Integers) -> None:
        self._state.select(torch.from_numpy(rows).to(self._searched.device))

    @torch.no_grad()
    def admit(self, sources: Sequence[Source]) -> None:
        self._state.admit(self._searched.encode(sources))

    @torch.no_grad()
    def best(
        self, tokens: Integers, k: int, constrain: Constrain | None = None
    ) -> tuple[Floats32, Integers]:
        given = torch.from_numpy(tokens).to(self._searched.device)
        log_probabilities, ids = self._searched.model.best(given, self._state, k, constrain)
        return log_probabilities.cpu().numpy(), ids.cpu().numpy()

    def native(self, k: int, length: int) -> Step | None:
        return self._state.native(k, length)
