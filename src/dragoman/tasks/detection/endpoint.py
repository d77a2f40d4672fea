"""A served detector, and its endpoint.

A picture is opened, which gives its number of pixels; decoded, in a thread of its own if it is
large; and searched for boxes in the queue of the run, as sentences are.
"""

from __future__ import annotations

from functools import partial

from pydantic import Field

from dragoman.forms.box_form import PER_BOX
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.file_run import FileRun, OpenedFile, SeenFile, drawn, looked, told
from dragoman.serving.service.service import Service
from dragoman.sources.picture.settings import PictureSource
from dragoman.sources.shared.rows_form import Rows
from dragoman.tasks.detection.detector import Detector


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


class ServedDetector(FileRun[Detector]):
    """A run that finds boxes, served over HTTP."""

    task, does, path = "detection", "finds boxes in pictures", "/v1/detect"
    trained, work = "dragoman train boxes.json --task detection", "look"
    sent, gives = DetectRequest, DetectAnswer

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedDetector:
        """Open the detector. Errors: ``RunError``, and ``DataError`` if the library that decodes
        pictures is missing."""
        asked = settings.model_copy(update={"longest": Detector.usual.longest})
        return cls(name, Detector(run, asked), settings)

    def told(
        self, one: OpenedFile, best: Hypothesis, threshold: float, seen: Rows | None = None
    ) -> SearchedPicture:
        """The boxes of a picture in the form of the API. ``seen``: the patches of the picture, if
        the answer also gives these and the attention for each box."""
        size = one.extent.height, one.extent.width
        found = self.predictor.answer(one.file.called, [best], size)
        shares = None if seen is None else looked(self.engine, seen, best.tokens)
        if shares is not None:
            shares = shares.reshape(-1, PER_BOX, shares.shape[-1]).mean(axis=1)
        return SearchedPicture(
            name=one.file.called,
            width=one.extent.width,
            height=one.extent.height,
            boxes=[
                FoundBox(
                    score=round(box.score, 6),
                    label=box.label,
                    box=BoxEdges.model_validate(box.to_dict()["box"]),
                    looked=None if shares is None else told(shares[number].tolist()),
                )
                for box, number in zip(found.above(threshold), found.order, strict=False)
            ],
            seen=None if seen is None else self._seen(seen),
        )

    def _seen(self, rows: Rows) -> SeenPicture:
        """The picture as the model reads it."""
        down, across = PictureSource.of(self.form.settings).grid
        return SeenPicture(**drawn(self.form, rows), rows=down, columns=across)


@asks(ServedDetector, "Find what is in pictures, and where")
async def detect(service: Service, request: DetectRequest, client: str) -> DetectAnswer:
    """Boxes with their labels and scores, the surest first, as the pipelines of transformers
    give them. Pictures come as `file`, in a form or in base64."""
    run = service.catalogue.of(ServedDetector, request.run)
    opened, rows, found = await run.searched(request, client)
    if request.seen:
        work = partial(run.told, opened[0], found[0][0], request.threshold, rows[0])
        pictures = [await run.asking.do(client, work)]
    else:
        told = (
            run.told(one, best, request.threshold)
            for one, (best, *_) in zip(opened, found, strict=True)
        )
        pictures = await service.texts.all(client, told)
    return DetectAnswer(run=run.name, files=pictures)
