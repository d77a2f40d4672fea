"""What goes in and out where a masked model fills in blanks: ``/v1/fill``."""

from __future__ import annotations

from pydantic import Field

from dragoman.serving.http.messages import Message
from dragoman.tasks.masked.filler import BEST, MAX_PIECES


class FillRequest(Message):
    """``POST /v1/fill``."""

    text: str
    """A text with blanks: ___, three underscores or more, where a word is to be filled in."""
    run: str | None = None
    """Name of the run to use, where several fill in."""
    pieces: int = Field(default=1, ge=1, le=MAX_PIECES)
    """Tokens of each blank, for words that the vocabulary has not whole."""
    top: int = Field(default=BEST, ge=1, le=1000)
    """How many candidates to give for each blank."""
    api_key: str | None = None


class Candidate(Message):
    """What may stand in a blank."""

    text: str
    probability: float
    """Given the text around it, while the other blanks are open; among all tokens of the
    vocabulary."""


class Blank(Message):
    """A blank of the text."""

    begin: int
    end: int
    """Characters of the text (Unicode code points): its first, and the one behind its last."""
    candidates: list[Candidate]
    """The most probable first."""
    chosen: str
    """What stands there in the filled text, which need not be the first: the surest blank is filled
    first, and the others are computed again."""


class FillAnswer(Message):
    """A text whose blanks are filled."""

    run: str
    text: str
    log_probability: float
    """Of all that was filled in, each given what was filled in before it."""
    blanks: list[Blank]
