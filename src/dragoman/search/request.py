"""What a search is asked: a source, how to search, and how the output must begin."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.errors import SearchError
from dragoman.models.searched import Source
from dragoman.search.record import StepRecord
from dragoman.search.settings import SearchSettings


@dataclass(frozen=True, eq=False)
class Request:
    """One source to search for."""

    source: Source
    """(length,) ids or (length, F) features, as the model encodes them: a text's end symbol
    included. The answer to a source of length 0 is the empty hypothesis."""
    settings: SearchSettings
    prefix: tuple[int, ...] = ()
    """Tokens with which the output must begin. Their scores are the model's own."""
    record: list[StepRecord] | None = None
    """If a list is given, what each step looked at is appended to it."""
    longest: int | None = None
    """Tokens of an output, the end symbol not counted, unless ``settings`` say otherwise
    (``Form.longest_output``); left out, the source's and ``max_extra``, as for text."""

    @property
    def limit(self) -> int:
        """The most tokens of an output, the end symbol not counted."""
        if self.settings.max_length is not None:
            return self.settings.max_length
        longest = self.longest
        if longest is None:
            longest = self.source.shape[0] - 1 + self.settings.max_extra
        return max(longest, self.settings.min_length)

    @property
    def searches(self) -> int:
        """How many searches of their own it begins with: one, or one per sample."""
        return self.settings.n_best if self.settings.sampling is not None else 1

    @property
    def rows(self) -> int:
        """The most rows of a batch that it takes up."""
        if self.settings.sampling is not None:
            return self.settings.n_best
        return self.settings.beam * (self.settings.n_best if self.settings.alternatives else 1)

    def check(self, eos: int) -> None:
        """Raise SearchError if it cannot be met."""
        if not self.prefix:
            return
        if len(self.prefix) > self.limit:
            raise SearchError(
                f"The prefix has {len(self.prefix)} tokens, but the output may have "
                f"{self.limit} at most: shorten the prefix or raise max_length."
            )
        if any(token < 0 or token == eos for token in self.prefix):
            raise SearchError(
                f"The prefix {list(self.prefix)} holds the end symbol {eos} or a negative number: "
                "it must be made of tokens of an output."
            )
