"""What goes in and out where a run reads lines of text in pictures: ``/v1/translate/pictures``."""

from __future__ import annotations

from pydantic import Field

from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.service.seen import LookedToken, SeenFile


class LinesRequest(WithFiles):
    """``POST /v1/translate/pictures``: pictures of one line of text each."""

    run: str | None = None
    """Name of the run to use, where several read lines of text."""
    beam: int | None = Field(default=None, ge=1)
    """Hypotheses kept at each step; the run's own if not given."""
    seen: bool = False
    """Give what the model reads of one picture, and where it looked as it wrote each token."""
    api_key: str | None = None


class SeenLine(SeenFile):
    """What a model reads of a line, at the height at which it is read."""

    tokens: list[LookedToken]
    """Rows of the encoder lie side by side, from the left to the right of the picture. Of more than
    1,024 rows or tokens, nothing is told of where they looked."""


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
    seen: SeenLine | None = None
    """Only where it was asked for."""


class LinesAnswer(Message):
    """One for each picture, in their order."""

    run: str
    source: str
    """Language of the lines."""
    target: str
    """Language of the texts."""
    files: list[ReadLine]
