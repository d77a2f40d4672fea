"""What the output of one search must obey, whatever the model would rather write.

A form whose outputs have a shape (a tree over these words) gives such rules for each source. A
search asks them, for every hypothesis and before every token, what may follow. They see the tokens
so far and nothing else, so hypotheses may be reordered, dropped and repeated as a beam does.

Shapes: N hypotheses of one search, all of L tokens, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

Booleans = npt.NDArray[np.bool_]


class Rules(ABC):
    """Of one source."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """The most tokens of an output, the end symbol not counted. Whatever is chosen among what
        is allowed, an output is whole by then."""

    @abstractmethod
    def allowed(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        """(N, V), of hypotheses ``tokens`` (N, L) that were allowed so far: True for what may
        follow, always one token at least."""
