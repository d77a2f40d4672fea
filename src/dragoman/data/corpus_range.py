"""Where the examples of a corpus stand in a store, and how their lengths are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class CorpusRange:
    """Which examples of a store came from one corpus: ``first`` to ``last``, last excluded."""

    first: int
    last: int
    weight: float = 1.0
    name: str = ""

    def __len__(self) -> int:
        return self.last - self.first


class LengthsOfSide(Protocol):
    """Lengths by example: an array, or what reads those that are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, examples: Any, /) -> npt.NDArray[np.int32]: ...
