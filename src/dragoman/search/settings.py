"""How to search. These settings need no torch, so that a recipe is read without it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from dragoman.settings import Settings


class SamplingSettings(Settings):
    """How to draw. Temperature comes first, then top-k, then top-p."""

    # A part of what the server is asked: its documentation shows them.
    model_config = ConfigDict(use_attribute_docstrings=True)

    temperature: float = Field(default=1.0, ge=1e-5, le=1000)
    """Log-probabilities are divided by it: below 1 favours the likely tokens, above 1 gives the
    others a better chance."""
    top_k: int = Field(default=0, ge=0, le=1_000_000)
    """Draw among the k most probable tokens only; 0: among all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Draw among the fewest most probable tokens that together hold this probability."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """The same seed gives the same samples of the same source."""


class SearchSettings(Settings):
    """How to search. The defaults are the paper's (section 6.1)."""

    beam: int = Field(default=4, ge=1, le=4096)
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: float = Field(default=0.6, ge=0, le=10)
    """α of ((5 + length) / 6)^α, which divides log-probabilities: 0 favours short outputs."""
    max_extra: int = Field(default=50, ge=0, le=100_000)
    """How many tokens longer than its source an output may be, end symbols counted in both. If
    nothing is read (language models), an output may have plan.context tokens, at most 1,000."""
    max_length: int | None = Field(default=None, ge=0, le=100_000)
    """The most tokens of an output, the end symbol not counted; replaces max_extra."""
    min_length: int = Field(default=0, ge=0, le=100_000)
    """The fewest tokens of an output, the end symbol not counted."""
    n_best: int = Field(default=1, ge=1, le=4096)
    """How many hypotheses to give, best first; when sampling, how many to draw."""
    alternatives: bool = False
    """Give n_best hypotheses that differ in their first token (after a prefix: the first free
    one): its n_best most probable tokens, each completed by a search of its own."""
    no_repeat_ngram: int = Field(default=0, ge=0, le=1000)
    """No sequence of this many tokens occurs twice in an output. 0: no limit."""
    stop: Literal["certain", "full"] = "certain"
    """certain: when nothing under way can still be among the n best. full: also once `beam`
    hypotheses have ended, which is sooner and now and then misses a better one."""
    sampling: SamplingSettings | None = None
    """Draw samples instead of searching for the most probable output."""

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
