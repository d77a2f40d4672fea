"""One request while it is searched for, and the best ended hypotheses of each of its groups."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dragoman.search.hypothesis import Hypothesis, rank
from dragoman.search.request import Request


@dataclass
class SearchJob:
    """One request under way."""

    ticket: int
    request: Request
    open: int
    """How many of its groups are not done."""
    rows: int
    """The most rows that it takes up."""
    source_length: int
    answers: list[Hypothesis] = field(default_factory=list)
    """The hypotheses of the groups that are done."""


@dataclass
class Pool:
    """The best ended hypotheses of one group, best first; those that were cut stand behind."""

    job: SearchJob
    branch: int
    """The number of this group among those of its request."""
    keep: int
    hypotheses: list[Hypothesis] = field(default_factory=list)
    worst: float = -np.inf
    """The score of the last hypothesis, once there are ``keep``; -inf before."""

    def offer(self, hypothesis: Hypothesis) -> None:
        """Keep it if it is among the best."""
        self.hypotheses.append(hypothesis)
        if self.keep > 1:
            self.hypotheses.sort(key=lambda h: rank(h.finished, h.score))
        elif len(self.hypotheses) > 1 and hypothesis.score > self.worst:
            self.hypotheses.reverse()
        del self.hypotheses[self.keep :]
        if len(self.hypotheses) == self.keep:
            self.worst = self.hypotheses[-1].score
