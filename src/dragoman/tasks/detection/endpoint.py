"""A served detector, and its endpoint.

A picture is opened, which gives its number of pixels; decoded, in a thread of its own if it is
large; and searched for boxes in the queue of the run, as sentences are.
"""

from __future__ import annotations

from functools import partial

from pydantic import Field

from dragoman.forms.boxes import PER_BOX
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.file_run import FileRun, OpenedFile, SeenFile, attention, png_of, trim
from dragoman.serving.service.service import Service
from dragoman.sources.picture.form import PictureSource
from dragoman.sources.shared.rows import Rows
from dragoman.tasks.detection.detector import Detector


class DetectRequest(WithFiles):
    """A request to find objects in pictures: `POST /v1/detect`."""

    run: str | None = None
    """The name of the run. Default: the first run that finds objects."""
    threshold: float = Field(default=0.5, ge=0, le=1)
    """The minimum score of the boxes to return."""
    beam: int | None = Field(default=None, ge=1)
    """The number of hypotheses kept at each step of the search. Default: the run's setting."""
    seen: bool = False
    """Return the input of the model, and its attention for each box. For one picture."""


class BoxEdges(Message):
    """The edges of a box, in pixels of the picture after it was turned upright as its EXIF data
    says."""

    xmin: int
    """The x coordinate of the left edge."""
    ymin: int
    """The y coordinate of the top edge."""
    xmax: int
    """The x coordinate of the right edge."""
    ymax: int
    """The y coordinate of the bottom edge."""


class FoundBox(Message):
    """A box in the form that the detection pipelines of Hugging Face's Transformers return."""

    score: float
    """The probability of the label, from 0 to 1."""
    label: str
    """The label of the object in the box."""
    box: BoxEdges
    """The edges of the box in pixels."""
    looked: list[float] | None = None
    """The share of the last layer's attention that each patch received while the box was written,
    row by row. Present only if `seen` was set. Absent for a run that finds boxes as a set, for a
    picture of more than 1,024 patches, and for more than 204 boxes."""


class SeenPicture(SeenFile):
    """A picture as the model reads it, scaled to the size of its input."""

    rows: int
    """The number of rows of patches."""
    columns: int
    """The number of columns of patches."""


class SearchedPicture(Message):
    """The objects that were found in one picture."""

    name: str
    """The name of the uploaded file. For base64, `file`, or `file[0]` and so on for a list."""
    width: int
    """The width in pixels, after the picture was turned upright as its EXIF data says."""
    height: int
    """The height in pixels, after the picture was turned upright as its EXIF data says."""
    boxes: list[FoundBox]
    """The boxes, those with the highest scores first."""
    seen: SeenPicture | None = None
    """The input of the model. Present only if `seen` was set."""


class DetectAnswer(Message):
    """The objects that were found in the pictures."""

    run: str
    """The name of the run that answered."""
    files: list[SearchedPicture]
    """The objects of each picture, in the order of the request."""


class ServedDetector(FileRun[Detector]):
    """A run that finds boxes, served over HTTP."""

    task, does, path = "detection", "finds boxes in pictures", "/v1/detect"
    trained = "dragoman train boxes.json --task detection"
    sent, gives = DetectRequest, DetectAnswer
    opens, work = Detector, "look"

    def to_schema(
        self, opened: OpenedFile, best: Hypothesis, threshold: float, seen: Rows | None = None
    ) -> SearchedPicture:
        """Return the boxes of a picture in the form of the API. ``seen``: the patches of the
        picture, if the answer also gives these and the attention for each box."""
        size = opened.extent.height, opened.extent.width
        picture = self.predictor.answer(opened.file.called, [best], size)
        shares = None if seen is None else attention(self.engine, seen, best.tokens)
        if shares is not None:
            shares = shares.reshape(-1, PER_BOX, shares.shape[-1]).mean(axis=1)
        return SearchedPicture(
            name=opened.file.called,
            width=opened.extent.width,
            height=opened.extent.height,
            boxes=[
                FoundBox(
                    score=round(box.score, 6),
                    label=box.label,
                    box=BoxEdges.model_validate(box.to_dict()["box"]),
                    looked=None if shares is None else trim(shares[number].tolist()),
                )
                for box, number in zip(picture.above(threshold), picture.order, strict=False)
            ],
            seen=None if seen is None else self._draw_input(seen),
        )

    def _draw_input(self, rows: Rows) -> SeenPicture:
        """Return the picture as the model reads it. ``rows``: its patches."""
        down, across = PictureSource.of(self.form.settings).grid
        return SeenPicture(**png_of(self.form, rows), rows=down, columns=across)


@asks(ServedDetector, "Find objects in pictures")
async def detect(service: Service, request: DetectRequest, client: str) -> DetectAnswer:
    """Returns boxes with their labels and scores, the highest scores first, in the form that the
    detection pipelines of Hugging Face's Transformers return. Send the pictures as `file`, in a
    form or in base64."""
    run = service.catalogue.of(ServedDetector, request.run)
    opened, rows, hypotheses = await run.search_files(request, client)
    if request.seen:
        work = partial(run.to_schema, opened[0], hypotheses[0][0], request.threshold, rows[0])
        pictures = [await run.asking.do(client, work)]
    else:
        messages = (
            run.to_schema(file, best, request.threshold)
            for file, (best, *_) in zip(opened, hypotheses, strict=True)
        )
        pictures = await service.texts.all(client, messages)
    return DetectAnswer(run=run.name, files=pictures)
