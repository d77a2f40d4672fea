"""The interface between search and model: arrays in, arrays out, on the host.

A search needs a model that reads sources, reads a token for each hypothesis, and returns the best
tokens to follow. ``on_torch.py`` implements this interface for models that torch runs; models that
kernels run implement it themselves, without torch (``transformer/int8_search.py``).

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
"""A constraint of a search: a function that changes log-probabilities (N, V) in place; -inf forbids
a token.

It works on log-probabilities, after the softmax, so that a forced or constrained hypothesis keeps
the score that the model itself gives it.
"""


class SearchSession(ABC):
    """A search under way in a model: the operations of ``models.interface.DecodeState``, and the
    model's steps."""

    @abstractmethod
    def select(self, rows: Integers) -> None:
        """Keep ``rows`` (M,), in that order: reorder, drop, or repeat hypotheses."""

    @abstractmethod
    def admit(self, sources: Sequence[Source]) -> None:
        """Read new sources, and add a row for each after those under way."""

    @abstractmethod
    def best(
        self, tokens: Integers, k: int, constrain: Constrain | None = None
    ) -> tuple[Floats32, Integers]:
        """Read ``tokens`` (N, 1). Return the k best continuations, best first: log-probabilities
        (N, k) and ids (N, k)."""

    def native(self, k: int, length: int) -> Step | None:
        """Return the step by which native code calls ``best`` itself (see ``DecodeState``); None if
        it cannot."""
        return None


class SearchModel(ABC):
    """A model as a search uses it."""

    @abstractmethod
    def begin(self, sources: Sequence[Source]) -> SearchSession:
        """Read ``sources``, and begin a search with one row for each."""
