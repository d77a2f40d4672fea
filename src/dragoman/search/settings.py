"""The settings of search. This module does not import torch, so that a recipe can be read without
it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from dragoman.base.settings import Settings

Penalty = Literal["wu", "marian"]


class SamplingSettings(Settings):
    """The settings for sampling tokens. Temperature is applied first, then top-k, then top-p."""

    # A part of what the server is asked: its documentation shows them.
    model_config = ConfigDict(use_attribute_docstrings=True)

    temperature: float = Field(default=1.0, ge=1e-5, le=1000)
    """Log-probabilities are divided by this. Values below 1 favour likely tokens; values above 1
    give unlikely tokens a better chance."""
    top_k: int = Field(default=0, ge=0, le=1_000_000)
    """Sample only from the k most probable tokens. 0: from all tokens."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample only from the smallest set of most probable tokens whose total probability reaches
    this value."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """The random seed. The same seed gives the same samples for the same source."""


class SearchSettings(Settings):
    """Settings of the search for outputs. The defaults are the paper's (section 6.1)."""

    beam: int = Field(default=4, ge=1, le=4096)
    """The number of hypotheses kept at each step. 1: greedy search."""
    length_penalty: float = Field(default=0.6, ge=0, le=10)
    """α in ((5 + length) / 6)^α, by which log-probabilities are divided. 0: no length penalty,
    which favours short outputs."""
    penalty: Penalty = "wu"
    """The formula of the length penalty. wu: ((5 + length) / 6)^α (Wu et al., 2016; the paper);
    marian: length^α, as Marian's ``--normalize`` and Hugging Face's ``length_penalty`` have it. The
    length counts the end symbol."""
    max_extra: int = Field(default=50, ge=0, le=100_000)
    """The number of tokens by which an output may exceed its source, counting the end symbols of
    both. For models without a source (language models), an output may have plan.context tokens, but
    at most 1,000."""
    max_length: int | None = Field(default=None, ge=0, le=100_000)
    """The maximum number of tokens in an output, without the end symbol. Overrides max_extra."""
    min_length: int = Field(default=0, ge=0, le=100_000)
    """The minimum number of tokens in an output, without the end symbol."""
    n_best: int = Field(default=1, ge=1, le=4096)
    """The number of hypotheses to return, best first; when sampling, the number of samples. Those
    that were cut at their maximum length come after those that the model ended, whatever their
    scores: the score of a cut output lacks the cost of its end."""
    alternatives: bool = False
    """Return n_best hypotheses that differ in their first token (after a prefix, in the first token
    that is not given). A separate search completes each of the n_best most probable first
    tokens."""
    no_repeat_ngram: int = Field(default=0, ge=0, le=1000)
    """Never repeat a sequence of this many tokens in an output. 0: no limit."""
    stop: Literal["certain", "full", "empty"] = "certain"
    """When to stop. certain: when no unfinished hypothesis can still be among the n best. full: as
    soon as `beam` hypotheses have ended, as CTranslate2 does; this is earlier and sometimes misses
    a better one. empty: a hypothesis that ends makes the beam narrower by one, and the search stops
    when the beam is empty, as Marian does; this also misses some."""
    ctc_weight: float = Field(default=0.0, ge=0, le=1)
    """For runs that were trained with CTC: the weight of CTC (λ) when continuations are scored;
    that of the decoder is 1 - λ. 0: the decoder alone searches, and CTC ranks what it finds."""
    sampling: SamplingSettings | None = None
    """Sample instead of searching for the most probable output."""

    @model_validator(mode="after")
    def _agree(self) -> SearchSettings:
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(
                f"min_length {self.min_length} is greater than max_length {self.max_length}"
            )
        if self.sampling is not None and self.alternatives:
            raise ValueError("alternatives need a beam search. Leave sampling out")
        if self.sampling is None and not self.alternatives and self.n_best > self.beam:
            raise ValueError(f"n_best {self.n_best} is greater than beam {self.beam}. Raise beam")
        return self
