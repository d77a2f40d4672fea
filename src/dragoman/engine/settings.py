"""Settings of inference: how a model computes, and which part of this machine it uses. Needs no
torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, ValidationError

from dragoman.errors import DragomanError
from dragoman.inference.settings import Precision
from dragoman.settings import Settings


class EngineSettings(Settings):
    """How an engine runs its model: what a translator and a server have in common."""

    precision: Precision = "auto"
    """Precision of computation; auto: the fastest on this machine that keeps the quality; fp32 is
    the reference."""
    rows: int = Field(64, ge=1, le=65_536)
    """Hypotheses under way at once in each worker: sentences x beam. If left out, texts and files
    are translated with more where that is faster (LSTMs and convolutional models: 256)."""
    longest: int = Field(250, ge=2, le=100_000)
    """The most source tokens to read at once; longer sentences are cut between words."""
    threads: int = Field(0, ge=0, le=1024)
    """Processor cores to use; 0: all that this process may use."""


class TranslatorSettings(EngineSettings):
    """How a translator reads its input and uses this machine."""

    long_lines: Literal["split", "cut"] = "split"
    """What to do with lines that are too long: split them into sentences and pieces, or cut them
    off at the end."""
    whole: bool = False
    """Translate a line of several sentences as one, even if the run has learned from single
    sentences. Otherwise the sentences are translated one by one, because such a model tends to stop
    after the first."""
    mbr: int = Field(0, ge=0, le=1024)
    """Take this many candidates (the best of a beam, or samples) and give the one that agrees best
    with all of them, by expected chrF (minimum Bayes risk). 0: give the most probable."""
    shortlist: bool = False
    """Score only the words that a source can lead to, which ``dragoman shortlist`` learns; faster
    with int8. Probabilities are then relative to that choice."""

    @classmethod
    def check(cls, **values: object) -> Self:
        """The settings, or a ``DragomanError`` that says in one line what is allowed."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problem = error.errors()[0]
            name = "-".join(str(part) for part in problem["loc"]).replace("_", "-")
            given = problem["input"]
            raise DragomanError(f"--{name}: {problem['msg']} (given: {given!r})") from None
