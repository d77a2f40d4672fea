"""What goes in and out where a run reads lines of text in pictures: ``/v1/translate/pictures``."""

from __future__ import annotations

from pydantic import Field

from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import WithFiles


class LinesRequest(WithFiles):
    """``POST /v1/translate/pictures``: pictures of one line of text each."""

    run: str | None = None
    """Name of the run to use, where several read lines of text."""
    beam: int | None = Field(default=None, ge=1)
    """Hypotheses kept at each step; the run's own if not given."""
    api_key: str | None = None


class ReadLine(Message):
    """What a run writes of one picture."""

    name: str
    """What it was called; of base64 ``file``, or its place as ``file[0]``."""
    width: int
    """Pixels of the picture as its camera was held."""
    height: int
    text: str
    log_probability: float
    """Of the text, in nats: the sum over its tokens."""
    probability: float
    """The mean probability of its tokens (geometric), 0 to 1."""


class LinesAnswer(Message):
    """One for each picture, in their order."""

    run: str
    source: str
    """Language of the lines."""
    target: str
    """Language of the texts."""
    files: list[ReadLine]
