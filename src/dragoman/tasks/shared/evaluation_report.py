"""What every evaluation of a finished run tells: whose figures these are, and on what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EvaluationReport(ABC):
    """The figures of a run on a test set."""

    run: str
    weights: str
    """Which weights these are: best, average or last, and of which update."""
    test: str
    """The name of the test set."""
    seconds: float

    @abstractmethod
    def table(self) -> str:
        """Plain text."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """All but what every evaluation tells, as plain values for JSON: figures, not sentences."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "run": self.run,
            "weights": self.weights,
            "test": self.test,
            "seconds": round(self.seconds, 2),
            **self.details(),
        }

    def outputs(self) -> Sequence[str]:
        """What the run made of each example, where it writes."""
        return ()

    @property
    def head(self) -> str:
        """The first line of its table."""
        return f"{self.run} ({self.weights}) on {self.test}"
