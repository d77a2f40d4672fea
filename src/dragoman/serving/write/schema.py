"""What goes in and out where a language model writes: ``/v1/write`` and what belongs to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dragoman.search.settings import SamplingSettings
from dragoman.serving.http.messages import Message, Texts


class WriteRequest(Message):
    """``POST /v1/write``."""

    text: str = ""
    """How the text begins; it may be empty."""
    run: str | None = None
    """Name of the run to use, where several write."""
    longest: int = Field(default=256, ge=1)
    """The most tokens to add."""
    sampling: SamplingSettings = SamplingSettings()
    """How tokens are drawn."""
    likeliest: bool = False
    """Search for the most probable, with the run's own beam; draw nothing."""
    stop: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(), max_length=16, fail_fast=True
    )
    """The text ends before any of these."""
    stream: bool = False
    """Answer with server-sent events: the text as it grows."""
    api_key: str | None = None


class TextWord(Message):
    """A word of a text, and how much the model was surprised by it."""

    before: str
    """Spaces and line ends in front; ``before`` and ``text`` of all words joined are the text."""
    text: str
    bits: float | None
    """-log2 P, given all that stands before it and is still read. Left out of what stood there
    before the model began to read."""


class WriteAnswer(Message):
    """A text that was gone on with."""

    run: str
    begin: str
    """How it began, as the vocabulary of the run knows it."""
    text: str
    """What was added."""
    ending: Literal["end", "stop", "longest"]
    """Why it ends: the model ended it, a stop string came, or it is as long as was asked for."""
    given: int
    """Tokens of the beginning."""
    written: int
    """Tokens that were added, those of a stop string counted."""
    context: int
    """Tokens that the model reads at once; of a longer text the last half of that."""
    words: list[TextWord]
    """Of the whole text, the beginning included."""


class SurpriseRequest(Message):
    """``POST /v1/surprisal``."""

    text: Texts
    """Text to read, or several."""
    run: str | None = None
    """Name of the run to use, where several write."""
    api_key: str | None = None


class Surprise(Message):
    """What a model thinks of one text."""

    words: list[TextWord]
    bits: float
    """-log2 P of all words."""
    end: float
    """The same of its end: little, where the model expects that nothing follows."""
    perplexity: float
    """Per token, the end counted."""
    bits_per_byte: float
    """The same in units that do not depend on the vocabulary."""


class SurpriseAnswer(Message):
    """One for each text, in their order."""

    run: str
    texts: list[Surprise]


class ContinuationsRequest(Message):
    """``POST /v1/continuations``."""

    text: str = ""
    """The text, or how one begins."""
    word: int | None = Field(default=None, ge=0)
    """What could stand in place of this word, counted from 0 as /v1/surprisal does; null: what
    could come after the text."""
    count: int = Field(default=6, ge=1)
    """How many to give, each with another first token."""
    run: str | None = None
    """Name of the run to use, where several write."""
    api_key: str | None = None


class Continuation(Message):
    """A word that could come, and how the model would go on from it."""

    before: str
    """Space in front."""
    text: str
    """Empty where the text would end."""
    probability: float
    """Given all that stands before it; its space included, as in the bits of a word."""
    rest: str
    """Some of what would follow, by greedy search."""


class ContinuationsAnswer(Message):
    """What could come, the most probable first."""

    run: str
    begin: str
    """What stands before: a text that goes on from one of them is ``begin``, its ``before`` and its
    ``text``."""
    continuations: list[Continuation]
