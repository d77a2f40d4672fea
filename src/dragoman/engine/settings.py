"""How a model is asked, and what of this machine it may use; needs no torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, ValidationError

from dragoman.errors import DragomanError
from dragoman.inference.settings import Precision
from dragoman.settings import Settings


class EngineSettings(Settings):
    """How an engine runs its model: what a translator and a server have in common."""

    precision: Precision = "auto"
    """auto: the fastest that this machine can run with the quality kept; fp32 is the reference."""
    rows: int = Field(64, ge=1, le=65_536)
    """Hypotheses under way at once in each worker: sentences x beam. Left out, texts and files are
    translated with more where that is faster (LSTMs and convolutional models: 256)."""
    longest: int = Field(250, ge=2, le=100_000)
    """Source tokens that are read at once; longer sentences are cut between words."""
    threads: int = Field(0, ge=0, le=1024)
    """Processor cores to use; 0: all that this process may use."""


class TranslatorSettings(EngineSettings):
    """How a translator treats its input and this machine."""

    long_lines: Literal["split", "cut"] = "split"
    """What happens to lines that are too long: they are split into sentences and pieces, or cut off
    at the end."""
    whole: bool = False
    """Translate a line as one also where it has several sentences and the run has learned from
    single ones. Otherwise they are translated one by one: such a model tends to stop after the
    first."""
    mbr: int = Field(0, ge=0, le=1024)
    """Of so many candidates (the best of a beam, or samples where the search draws) give the one
    that agrees best with all of them, by expected chrF (minimum Bayes risk). 0: the most probable.
    """
    shortlist: bool = False
    """Score only the words that a source can lead to (``dragoman shortlist`` learns them): faster,
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
