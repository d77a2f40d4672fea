"""What goes in and out where a run finds boxes: ``/v1/detect``."""

from __future__ import annotations

from pydantic import Field

from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.service.seen import SeenFile


class DetectRequest(WithFiles):
    """``POST /v1/detect``: pictures."""

    run: str | None = None
    """Name of the run to use, where several detect."""
    threshold: float = Field(default=0.5, ge=0, le=1)
    """The least score of a box that is given."""
    beam: int | None = Field(default=None, ge=1)
    """Hypotheses kept at each step; the run's own if not given."""
    seen: bool = False
    """Give what the model reads of one picture, and where it looked as it wrote each box."""
    api_key: str | None = None


class BoxEdges(Message):
    """The edges of a box, in pixels of the picture as its camera was held."""

    xmin: int
    ymin: int
    xmax: int
    ymax: int


class FoundBox(Message):
    """One box, as the pipelines of transformers give it."""

    score: float
    """The probability of the label, 0 to 1."""
    label: str
    box: BoxEdges
    looked: list[float] | None = None
    """The share of the attention of the last layer that each patch got while the box was written,
    patches row by row. Only where `seen` was asked for; a run that finds boxes as a set writes
    none, and of more than 1,024 patches or 204 boxes it is left out."""


class SeenPicture(SeenFile):
    """What a model reads of a picture, at the size at which it is read."""

    rows: int
    """Patches from top to bottom."""
    columns: int


class SearchedPicture(Message):
    """What a run finds in one picture."""

    name: str
    """What it was called; of base64 ``file``, or its place as ``file[0]``."""
    width: int
    height: int
    boxes: list[FoundBox]
    """The surest first."""
    seen: SeenPicture | None = None
    """Only where it was asked for."""


class DetectAnswer(Message):
    """One for each picture, in their order."""

    run: str
    files: list[SearchedPicture]
