"""The interface between search and model: arrays in, arrays out, on the host.

Search needs of a model that it reads sources, takes a token for each hypothesis and says which
tokens may follow best. Models that torch runs are spoken to through ``on_torch.py``; what kernels
run speaks so itself, without torch (``transformer/int8_search.py``).

Shapes: N live rows of a search (sources x beam), k candidates per row, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.native.abi import Step

if TYPE_CHECKING:
    from torch import Tensor

Floats32 = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Source: TypeAlias = "npt.NDArray[Any] | Tensor"
"""One source, on the host: (length,) ids, the end symbol included, or (length, F) features."""

Constrain = Callable[[Floats32], Floats32]
"""Constraints of a search: log-probabilities (N, V), changed in place; -inf forbids a token.

It works on log-probabilities, after the softmax, so that the score of a forced or constrained
hypothesis stays what the model itself gives it.
"""


class SearchSession(ABC):
    """A search under way in a model: ``models.interface.DecodeState``, and the model's steps."""

    @abstractmethod
    def select(self, rows: Integers) -> None:
        """Keep ``rows`` (M,), in that order: reorder, drop, or repeat hypotheses."""

    @abstractmethod
    def admit(self, sources: Sequence[Source]) -> None:
        """Read new sources and add a row for each behind those under way."""

    @abstractmethod
    def best(
        self, tokens: Integers, k: int, constrain: Constrain | None = None
    ) -> tuple[Floats32, Integers]:
        """Take in ``tokens`` (N, 1), then the k best of what may follow, best first:
        log-probabilities (N, k) and ids (N, k)."""

    def native(self, k: int, length: int) -> Step | None:
        """The step by which native code calls ``best`` itself (``DecodeState``); None if it
        cannot.
        """
        return None


class SearchModel(ABC):
    """A model as a search knows it."""

    @abstractmethod
    def begin(self, sources: Sequence[Source]) -> SearchSession:
        """Read these sources and begin to search for each, with one row."""
