"""What a search is asked: a source, how to search, and how the output must begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator
from torch import Tensor

from dragoman.errors import SearchError
from dragoman.search.record import StepRecord
from dragoman.search.sampling import SamplingSettings
from dragoman.settings import Settings


class SearchSettings(Settings):
    """How to search. The defaults are the paper's (section 6.1)."""

    beam: int = Field(default=4, ge=1)
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: float = Field(default=0.6, ge=0)
    """α of ((5 + length) / 6)^α, which divides log-probabilities: 0 favours short outputs."""
    max_extra: int = Field(default=50, ge=0)
    """An output may be so many tokens longer than its source, end symbols counted in both."""
    max_length: int | None = Field(default=None, ge=0)
    """At most so many tokens, the end symbol not counted; takes the place of max_extra."""
    min_length: int = Field(default=0, ge=0)
    """At least so many tokens, the end symbol not counted."""
    n_best: int = Field(default=1, ge=1)
    """How many hypotheses to give, best first; when sampling, how many to draw."""
    alternatives: bool = False
    """Give n_best hypotheses that differ in their first token (after a prefix: the first free
    one): its n_best most probable tokens, each completed by a search of its own."""
    no_repeat_ngram: int = Field(default=0, ge=0)
    """No run of so many tokens stands twice in an output; 0: no limit."""
    stop: Literal["certain", "full"] = "certain"
    """certain: when nothing under way can still be among the n best. full: also once `beam`
    hypotheses have ended, which is sooner and now and then misses a better one."""
    sampling: SamplingSettings | None = None
    """Draw tokens by chance in place of searching for the most probable."""

    @model_validator(mode="after")
    def _agree(self) -> SearchSettings:
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(
                f"min_length {self.min_length} is greater than max_length {self.max_length}"
            )
        if self.sampling is not None and self.alternatives:
            raise ValueError("alternatives are searched for: leave sampling out")
        if self.sampling is None and not self.alternatives and self.n_best > self.beam:
            raise ValueError(
                f"n_best {self.n_best} is greater than beam {self.beam}: widen the beam"
            )
        return self


@dataclass(frozen=True, eq=False)
class Request:
    """One source to search for. It stands on the host; a scheduler moves it where it is needed."""

    source: Tensor
    """(length,) ids or (length, F) features, as the model encodes them: a text's end symbol
    included. The answer to a source of length 0 is the empty hypothesis."""
    settings: SearchSettings
    prefix: tuple[int, ...] = ()
    """Tokens with which the output must begin. Their scores are the model's own."""
    record: list[StepRecord] | None = None
    """If a list is given, what each step looked at is appended to it."""

    @property
    def limit(self) -> int:
        """The most tokens of an output, the end symbol not counted."""
        if self.settings.max_length is not None:
            return self.settings.max_length
        return max(self.source.shape[0] + self.settings.max_extra - 1, self.settings.min_length)

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
