"""The request for a search (a source, settings, the beginning of the output) and its state.

The searches of a request are *groups*, and the hypotheses of a group that have not ended are *rows*
of a batch (``beam.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dragoman.base.errors import SearchError
from dragoman.forms.form import Rules
from dragoman.models.searched import Source
from dragoman.search.hypothesis import Hypothesis, StepRecord, best_of, hypothesis_of
from dragoman.search.settings import SearchSettings


@dataclass(frozen=True, eq=False)
class Request:
    """A source, with the settings and limits of the search for its output."""

    source: Source
    """(length,) ids or (length, F) features, as the model encodes them: for text, with the end
    symbol. The answer to a source of length 0 is the empty hypothesis."""
    settings: SearchSettings
    prefix: tuple[int, ...] = ()
    """The tokens with which the output must begin. Their scores are the model's own."""
    record: list[StepRecord] | None = None
    """A list to which the search appends the record of each step; None: no record."""
    longest: int | None = None
    """The most tokens of an output, without the end symbol (``Form.longest_output``).
    ``settings.max_length`` and rules override it, and ``settings.min_length`` raises it. None: the
    length of the source without its end symbol, plus ``max_extra``, as for text."""
    rules: Rules | None = None
    """The rules that the output must obey. They also limit its length."""

    @property
    def limit(self) -> int:
        """The most tokens of the output, without the end symbol."""
        if self.rules is not None:
            return self.rules.longest
        if self.settings.max_length is not None:
            return self.settings.max_length
        longest = self.longest
        if longest is None:
            longest = self.source.shape[0] - 1 + self.settings.max_extra
        return max(longest, self.settings.min_length)

    def check(self, eos: int) -> None:
        """Raise ``SearchError`` if the request cannot be met. ``eos``: the end symbol of
        outputs."""
        if self.rules is not None and (self.settings.min_length or self.settings.no_repeat_ngram):
            raise SearchError(
                "The output of this model must follow rules, and with min_length or "
                "no_repeat_ngram there may be no valid next token. Set both of them to 0."
            )
        if not self.prefix:
            return
        if len(self.prefix) > self.limit:
            raise SearchError(
                f"The prefix has {len(self.prefix)} tokens, but the output may have "
                f"{self.limit} at most: shorten the prefix or raise max_length."
            )
        if any(token < 0 or token == eos for token in self.prefix):
            raise SearchError(
                f"The prefix {list(self.prefix)} holds the end symbol {eos} or a negative "
                "number: it may contain only tokens of an output."
            )
        if self.rules is not None:
            tokens = np.array([self.prefix], np.int32)
            for place, token in enumerate(self.prefix):
                may = self.rules.allows(tokens[:, :place])[0]
                if token >= len(may) or not may[token]:
                    raise SearchError(
                        f"Token {place + 1} of the prefix {list(self.prefix)} cannot follow there."
                    )


def rows_of(settings: SearchSettings) -> int:
    """Return the most rows of a batch that a search needs."""
    if settings.sampling is not None:
        return settings.n_best
    return settings.beam * (settings.n_best if settings.alternatives else 1)


@dataclass
class SearchJob:
    """The state of a request that waits or is being searched for. ``ticket`` is its number."""

    ticket: int
    request: Request
    open: int
    """The number of groups of the request that are not done."""
    rows: int
    """The most rows that the request needs."""
    source_length: int
    answers: list[Hypothesis] = field(default_factory=list)
    """The hypotheses of the groups that are done."""


@dataclass
class Pool:
    """The best ended hypotheses of one group, at most ``keep``, best first. Those that were cut
    come last."""

    job: SearchJob
    branch: int
    """The number of the group among those of its request."""
    keep: int
    hypotheses: list[Hypothesis] = field(default_factory=list)
    worst: float = -np.inf
    """The score of the last hypothesis once there are ``keep`` of them; -inf before."""

    def offer(self, tokens: list[int], log_probabilities: list[float], end: float | None) -> None:
        """Keep an output if it is among the best. ``end``: the log-probability of its end symbol;
        None if it was cut."""
        if end is not None:
            log_probabilities.append(end)
        settings = self.job.request.settings
        new = hypothesis_of(tokens, log_probabilities, settings, finished=end is not None)
        self.hypotheses = best_of([*self.hypotheses, new], self.keep)
        if len(self.hypotheses) == self.keep:
            self.worst = self.hypotheses[-1].score
