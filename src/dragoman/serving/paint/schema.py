"""What goes in and out where a run paints: ``/v1/images/generations``, as OpenAI has it
(https://platform.openai.com/docs/api-reference/images)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dragoman.serving.http.messages import Message
from dragoman.tasks.painting.painter import LARGEST_SCALE


class ImagesRequest(Message):
    """``POST /v1/images/generations``: a caption."""

    prompt: str
    """The caption of the pictures."""
    model: str | None = None
    """Name of the run to use. Without it, or with `gpt-image-1`, `dall-e-2` or `dall-e-3`: the
    first that paints."""
    n: int | None = Field(default=None, ge=1, le=10)
    """How many pictures; 1 if not given. Without `seed`, the most probable ones."""
    size: str | None = None
    """`auto`, or the size of the run's own pictures, as `64x64`: a run paints in one size."""
    response_format: Literal["b64_json"] | None = None
    """`b64_json`: pictures come in the answer. The server keeps none, and so gives no address."""
    output_format: Literal["png"] | None = None
    """`png`: every picture is one."""
    stream: Literal[False] | None = None
    """A picture comes in whole."""
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    """Draw the pictures by their probabilities, the same ones for the same seed. Without it the
    most probable ones are searched for. Not a field of OpenAI's."""
    scale: int = Field(default=1, ge=1, le=LARGEST_SCALE)
    """The side of each pixel in the PNG. Not a field of OpenAI's."""
    explain: bool = False
    """Also tell the codes of each picture, how probable each was, and how much it looked at each
    word of the caption. Not a field of OpenAI's."""
    quality: str | None = None
    """Read and not used, as the fields below: a run paints in one way."""
    style: str | None = None
    background: str | None = None
    moderation: str | None = None
    output_compression: int | None = None
    user: str | None = None
    api_key: str | None = None


class WrittenCodes(Message):
    """The codes of a picture as they were written: patch by patch, from left to right and from top
    to bottom."""

    rows: int
    columns: int
    codes: list[int]
    probabilities: list[float]
    """That of each code, given those before it."""
    attention: list[list[float]]
    """For each code, how much it looked at each of ``words``; the rest of 1 was at the end of the
    caption. Each is empty where the model has no attention."""


class PaintedImage(Message):
    """A picture."""

    b64_json: str
    """A PNG file, in base64."""
    written: WrittenCodes | None = None
    """With `explain` alone."""


class ImagesAnswer(Message):
    """The pictures of a caption, the most probable first."""

    created: int
    """When, in seconds since 1970."""
    data: list[PaintedImage]
    words: list[str] | None = None
    """With `explain` alone: what stands between the spaces of the caption."""
    unknown: list[str] | None = None
    """With `explain` alone: words that no caption of the training has, so that it is not known what
    to paint for them."""
