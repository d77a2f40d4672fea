"""Where the examples of a corpus stand in a store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CorpusRange:
    """Which examples of a store came from one corpus: ``first`` to ``last``, last excluded."""

    first: int
    last: int
    weight: float = 1.0
    name: str = ""

    def __len__(self) -> int:
        return self.last - self.first
