"""The predictor of boxes: it reads pictures and finds objects in them.

    detector = dragoman.Detector(dragoman.Run.open("runs/scenes"))
    for found in detector("a.png"):
        print(found.label, found.score, found.box)

A search writes ``boxes.most`` boxes for each picture. The score of a box is the probability of its
label among all labels and "nothing" (Chen et al., 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dragoman.base.errors import DataError
from dragoman.engine.predictor import SearchingPredictor
from dragoman.forms.boxes import PER_BOX, Box, BoxForm
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.sources.picture.idx import is_place
from dragoman.sources.picture.picture_file import picture_size
from dragoman.sources.shared.files import file_of

THRESHOLD = 0.5
"""The lowest score of a box that is shown, unless the caller gives another threshold."""


@dataclass(frozen=True)
class Detection:
    """A box that was found in a picture. ``str(detection)`` gives its label."""

    label: str
    score: float
    """The probability of the label, from 0 to 1."""
    box: Box
    """The place of the box, in pixels of the picture as it was given."""

    def to_dict(self) -> dict[str, Any]:
        """Return the box in the format of the detection pipelines of Hugging Face's
        Transformers."""
        edges = map(round, self.box.edges)
        box = dict(zip(("xmin", "ymin", "xmax", "ymax"), edges, strict=True))
        return {"score": round(self.score, 4), "label": self.label, "box": box}

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class DetectedPicture:
    """One picture and all boxes that were found in it, sorted by score."""

    picture: str
    width: int
    height: int
    detections: tuple[Detection, ...]
    ids: tuple[int, ...]
    """The symbols that the model wrote."""
    score: float
    """The log-probability of these symbols, in nats."""
    order: tuple[int, ...] = ()
    """For each of ``detections``, the number of boxes that were written before it."""

    def above(self, threshold: float) -> list[Detection]:
        """Return the boxes whose score is at least ``threshold``."""
        return [detection for detection in self.detections if detection.score >= threshold]

    @property
    def text(self) -> str:
        """The boxes whose score is at least ``THRESHOLD``, on one line."""
        return "; ".join(map(text_of_box, self.above(THRESHOLD))) or "nothing"


class Detector(SearchingPredictor[list[Detection], DetectedPicture]):
    """A trained detector. Do not use it from several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("detection", "which finds no boxes")

    def each(
        self, given: Iterable[str], *, threshold: float = THRESHOLD, beam: int | None = None
    ) -> Iterator[list[Detection]]:
        """Yield the boxes of each picture whose score is at least ``threshold``, sorted by score.
        ``beam`` replaces the run's own. Errors: ``DataError`` for a file that cannot be used."""
        from dragoman.engine.settings import with_beams

        settings = with_beams(self.engine.search_settings, beam, None)
        for picture in self.stream(given, settings):
            yield picture.above(threshold)

    def ask(self, given: str, settings: SearchSettings | None = None) -> Request:
        """Make the search request for the boxes of a picture. Errors: ``DataError`` for a file that
        cannot be used."""
        chosen = (settings or self.engine.search_settings).model_copy(update={"n_best": 1})
        (rows,) = self.engine.source.read([given])
        return self.engine.request(rows, chosen, raw=given)

    def answer(
        self,
        given: str,
        hypotheses: Sequence[Hypothesis],
        size: tuple[int, int] | None = None,
    ) -> DetectedPicture:
        """Return the boxes of the best hypothesis for the picture ``given``. ``size``: height and
        width of the upright picture; without it, they are read from its file."""
        best, symbols = hypotheses[0], BoxForm.of(self.engine.target).symbols
        # The pictures of an IDX file have the size that the model reads.
        held = size or (symbols.read if is_place(given) else picture_size(file_of(given)))
        height, width = held
        boxes = symbols.decode(best.tokens, width, height)
        of_labels = best.token_log_probabilities[PER_BOX - 1 : len(best.tokens) : PER_BOX]
        detections = [
            Detection(box.label, math.exp(sure), box)
            for box, sure in zip(boxes, of_labels, strict=True)
        ]
        order = sorted(range(len(detections)), key=lambda number: -detections[number].score)
        return DetectedPicture(
            given, width, height, tuple(detections[number] for number in order),
            best.tokens, best.log_probability, tuple(order),
        )  # fmt: skip

    # ---- looking

    @property
    def no_inside(self) -> str | None:
        if self.engine.network.attentions:
            return None
        return "finds boxes as a set and cannot be looked into. Use a run with boxes.kind = tokens"

    def own_output(self, text: str, prefix: str = "") -> DetectedPicture:
        """Return the boxes of the picture in the file ``text``, for figures. Errors: ``DataError``
        for a prefix."""
        if prefix:
            raise DataError("boxes cannot have a prefix. Leave it out")
        (picture,) = self.stream([text])
        return picture


def text_of_box(detection: Detection) -> str:
    """Return a box as text, with its label, score and corners: "three 0.98 at 10,5 to 30,24"."""
    box = detection.box
    return (
        f"{detection.label} {detection.score:.2f} at {box.left:.0f},{box.top:.0f} to "
        f"{box.right:.0f},{box.bottom:.0f}"
    )
